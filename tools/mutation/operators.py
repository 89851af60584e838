# SPDX-License-Identifier: Apache-2.0
"""Finds the mutants of a source in its syntax tree."""

import collections
import re

# Replaces source[start:end], bytes of the file, by `text`.
Edit = collections.namedtuple("Edit", "operator start end text")

RELATIONAL = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
    "==": ("!=",), "!=": ("==",),
}
ARITHMETIC = {
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",),
    "&": ("|",), "|": ("&",), "<<": (">>",), ">>": ("<<",),
}
ASSIGNING = {
    "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",),
    "&=": ("|=",), "|=": ("&=",),
}
LOGICAL = {"&&": ("||",), "||": ("&&",)}
# Operators whose operands are dropped: `3 * post` becomes `post`.
DROPPING = set(ARITHMETIC) | set(LOGICAL)

# Calls whose arguments are messages or cannot fail a test: not mutated inside,
# and not removed.
TEXT = re.compile(
    r"^(\w+Error|StrCat|StrFormat|StrJoin|Substitute|PrintF|FPrintF|strerror"
    r"|reserve|shrink_to_fit|AddProblem|report|describe|Warn|Note)$")
# Calls that append text: removed as a statement, not mutated inside.
APPENDING = {"StrAppend"}
# Types with methods such as Problems::Add.
PROBLEM_TYPES = re.compile(r"\bProblems?\b|ActionProblems")
MACRO = re.compile(rb"[A-Z][A-Z0-9_]{3,}\(")
EXTREMES = {"min": "max", "max": "min"}


class Finder:
    """Collects the edits of one translation unit."""

    def __init__(self, cindex, path, source):
        self._kind = cindex.CursorKind
        self._types = cindex.TypeKind
        self._path = path
        self._source = source
        self._edits = []

    def find(self, unit):
        for cursor in unit.cursor.get_children():
            where = cursor.location.file
            if where is not None and where.name == self._path:
                self._visit(cursor, None)
        unique = dict.fromkeys(self._edits)
        return sorted(unique,
                      key=lambda e: (e.start, e.end, e.operator, e.text))

    # -- text -----------------------------------------------------------------

    @staticmethod
    def _range(cursor):
        extent = cursor.extent
        return extent.start.offset, extent.end.offset

    def _text(self, cursor):
        start, end = self._range(cursor)
        return self._source[start:end].decode()

    def _between(self, left, right):
        """Returns the operator between two operands, and its location.

        Operands from a macro all begin at the use of the macro, so that no
        operator is found between them.
        """
        start, end = left.extent.end.offset, right.extent.start.offset
        if start >= end:
            return None
        text = self._source[start:end].decode()
        operator = text.strip()
        if not operator or re.search(r"[\w\"'/]{2}|//", operator):
            return None
        start += text.index(operator)
        return operator, start, start + len(operator)

    def _add(self, operator, start, end, text):
        if not 0 <= start < end or self._source[start:end].decode() == text:
            return
        # The location of a macro's expansion is the macro's name.
        if MACRO.match(self._source, start) and operator != "error":
            return
        self._edits.append(Edit(operator, start, end, text))

    def _replace(self, operator, cursor, text):
        self._add(operator, *self._range(cursor), text)

    # -- the walk -------------------------------------------------------------

    def _visit(self, cursor, parent):
        kind = cursor.kind
        if kind == self._kind.STATIC_ASSERT or self._is_text(cursor):
            return
        if kind == self._kind.BINARY_OPERATOR:
            self._binary(cursor)
        elif kind == self._kind.COMPOUND_ASSIGNMENT_OPERATOR:
            self._binary(cursor)
        elif kind == self._kind.UNARY_OPERATOR:
            # A loop that counts in the other direction only costs time.
            if parent is None or parent.kind != self._kind.FOR_STMT:
                self._unary(cursor)
        elif kind == self._kind.CALL_EXPR:
            if cursor.spelling in APPENDING:
                return
            self._call(cursor)
        elif kind in (self._kind.IF_STMT, self._kind.WHILE_STMT,
                      self._kind.CONDITIONAL_OPERATOR):
            self._condition(cursor)
        elif kind == self._kind.COMPOUND_STMT:
            self._statements(cursor, parent)
        elif kind in (self._kind.INTEGER_LITERAL,
                      self._kind.FLOATING_LITERAL):
            self._number(cursor)
        elif kind == self._kind.CXX_BOOL_LITERAL_EXPR:
            self._bool(cursor)
        elif kind == self._kind.RETURN_STMT:
            self._return(cursor)
        if kind in (self._kind.IF_STMT, self._kind.FOR_STMT,
                    self._kind.WHILE_STMT, self._kind.CXX_FOR_RANGE_STMT):
            self._bodies(cursor)
        for child in cursor.get_children():
            self._visit(child, cursor)

    def _is_text(self, cursor):
        if cursor.kind != self._kind.CALL_EXPR:
            return False
        if TEXT.match(cursor.spelling or ""):
            return True
        if cursor.spelling not in ("Add", "CheckRange"):
            return False
        children = list(cursor.get_children())
        for inner in children[:1]:
            for receiver in inner.get_children():
                spelled = receiver.type.get_canonical().spelling
                if PROBLEM_TYPES.search(spelled):
                    return True
        return False

    def _binary(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        found = self._between(*children)
        if found is not None:
            self._operator(cursor, children, *found)

    def _operator(self, cursor, children, operator, start, end):
        for name, table in (("relational", RELATIONAL),
                            ("arithmetic", ARITHMETIC),
                            ("assignment", ASSIGNING), ("logical", LOGICAL)):
            for other in table.get(operator, ()):
                self._add(name, start, end, other)
        if operator in DROPPING:
            for child in children:
                self._replace("operand", cursor, self._text(child))

    def _unary(self, cursor):
        start, end = self._range(cursor)
        text = self._source[start:end].decode()
        for one, other in (("++", "--"), ("--", "++")):
            if text.startswith(one):
                self._add("increment", start, start + 2, other)
            elif text.endswith(one):
                self._add("increment", end - 2, end, other)
        if text.startswith("!"):
            self._add("negation", start, start + 1, "")
        elif text.startswith("-") and not text.startswith("--"):
            self._add("negation", start, start + 1, "")

    def _call(self, cursor):
        name = cursor.spelling or ""
        if name in ("operator==", "operator!=", "operator<", "operator<=",
                    "operator>", "operator>="):
            children = list(cursor.get_children())
            if len(children) == 3:
                found = self._between(children[0], children[2])
                if found is not None and found[0] in RELATIONAL:
                    for other in RELATIONAL[found[0]]:
                        self._add("relational", found[1], found[2], other)
            return
        arguments = [a for a in cursor.get_arguments() if a is not None]
        if name in EXTREMES:
            self._extreme(cursor, name, arguments)
        elif not name.startswith("operator"):
            self._swap(arguments)

    def _extreme(self, cursor, name, arguments):
        start, _ = self._range(cursor)
        if not arguments:
            return
        head = self._source[start:arguments[0].extent.start.offset].decode()
        at = head.find(name)
        if at < 0:
            return
        at += start
        self._add("min/max", at, at + len(name), EXTREMES[name])
        if len(arguments) == 2:
            for argument in arguments:
                self._replace("operand", cursor, self._text(argument))

    def _swap(self, arguments):
        for one, other in zip(arguments, arguments[1:]):
            if one.type.get_canonical() != other.type.get_canonical():
                continue
            start, middle = self._range(one)
            following, end = self._range(other)
            if not start < middle <= following < end:
                continue
            between = self._source[middle:following].decode()
            if "," not in between:
                continue
            self._add("arguments", start, end,
                      self._text(other) + between + self._text(one))

    def _condition(self, cursor):
        # In an if-statement with an initializer or a declaration, the first
        # child is not the condition: only expressions are negated.
        for child in cursor.get_children():
            if not child.kind.is_expression():
                return
            text = self._text(child)
            if text and not text.startswith("!") and (
                    not self._is_relation(child)):
                self._replace("condition", child, f"!({text})")
            return

    def _is_relation(self, cursor):
        """Returns True for `a < b`, which has relational mutants already."""
        children = list(cursor.get_children())
        if cursor.kind == self._kind.UNEXPOSED_EXPR and len(children) == 1:
            return self._is_relation(children[0])
        if len(children) not in (2, 3):
            return False
        found = self._between(children[0], children[-1])
        return found is not None and found[0] in RELATIONAL

    def _statements(self, cursor, parent):
        children = list(cursor.get_children())
        # The behavior of a function that ends without its return is undefined.
        if (children and parent is not None and
                children[-1].kind == self._kind.RETURN_STMT and
                parent.kind not in (self._kind.IF_STMT, self._kind.FOR_STMT,
                                    self._kind.WHILE_STMT,
                                    self._kind.CXX_FOR_RANGE_STMT)):
            children.pop()
        for child in children:
            self._statement(child)

    def _bodies(self, cursor):
        for child in list(cursor.get_children())[1:]:
            if not child.kind.is_expression() or cursor.kind in (
                    self._kind.IF_STMT, self._kind.CXX_FOR_RANGE_STMT):
                self._statement(child)

    def _statement(self, cursor):
        start, end = self._range(cursor)
        if start >= end or self._is_text(cursor):
            return
        kind = cursor.kind
        if self._source.startswith(b"RETURN_IF_ERROR(", start):
            self._add("error", start, start + len("RETURN_IF_ERROR"), "(void)")
        elif kind in (self._kind.CONTINUE_STMT, self._kind.BREAK_STMT,
                      self._kind.RETURN_STMT):
            self._add("jump", start, end, "")
        elif kind.is_expression() and self._is_effect(cursor):
            if self._source[end:end + 1] == b";" or re.match(
                    rb"\s*;", self._source[end:end + 16]):
                self._add("statement", start, end, "")

    def _is_effect(self, cursor):
        """Returns True for calls and assignments, not for values or lambdas."""
        text = self._text(cursor)
        if not text or text[0] in "{(" or text.startswith(("CHECK", "assert")):
            return False
        if cursor.kind == self._kind.UNEXPOSED_EXPR:  # holds temporaries
            children = list(cursor.get_children())
            return len(children) == 1 and self._is_effect(children[0])
        return cursor.kind in (
            self._kind.CALL_EXPR, self._kind.BINARY_OPERATOR,
            self._kind.COMPOUND_ASSIGNMENT_OPERATOR,
            self._kind.UNARY_OPERATOR)

    def _number(self, cursor):
        text = self._text(cursor)
        if not re.fullmatch(r"[\d'.eExXa-fA-F+\-uUlL]+", text):
            return
        if re.fullmatch(r"0[uUlL]*|0?\.0*f?|0\.", text):
            self._replace("constant", cursor, "1")
        elif cursor.kind == self._kind.INTEGER_LITERAL:
            self._replace("constant", cursor, "0")
            if text != "1":
                self._replace("constant", cursor, f"({text} + 1)")
            else:
                self._replace("constant", cursor, "2")
        else:
            self._replace("constant", cursor, "0.0")
            self._replace("constant", cursor, f"({text} + 1)")

    def _bool(self, cursor):
        text = self._text(cursor)
        if text in ("true", "false"):
            self._replace("constant", cursor,
                          "false" if text == "true" else "true")

    def _return(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 1:
            return
        value = children[0]
        text = self._text(value)
        if not text or text in ("{}", "true", "false", "0", '""'):
            return
        if self._source[value.extent.start.offset:][:1] == b"{":
            return
        start, end = self._range(value)
        if value.type.get_canonical().kind == self._types.BOOL:
            self._add("return", start, end, "true")
            self._add("return", start, end, "false")
        elif not TEXT.search(value.spelling or ""):
            self._add("return", start, end, "{}")


def find_edits(cindex, unit, path, source):
    return Finder(cindex, path, source).find(unit)
