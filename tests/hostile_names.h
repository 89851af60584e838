// SPDX-License-Identifier: Apache-2.0
// Names that would do harm if an output contained them unescaped. Every kind of
// output is tested with all of them.
#ifndef WEIR_TESTS_HOSTILE_NAMES_H_
#define WEIR_TESTS_HOSTILE_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/text.h"

namespace weir {

// The file that a name creates in the current folder if an interpreter runs it.
constexpr char kCanary[] = "CANARY";

struct HostileName {
  const char* kind;
  std::string text;
  bool is_utf8 = true;  // protocol buffers hold only UTF-8 strings
};

inline const std::vector<HostileName>& HostileNames() {
  static const auto& names = *new std::vector<HostileName>{
      {"backticks", "a `touch CANARY` b"},
      {"command substitution", "a $(touch CANARY) b"},
      {"command separators", "a; touch CANARY & touch CANARY | touch CANARY"},
      {"pipe first", "| touch CANARY"},
      {"redirection", "a > CANARY"},
      {"single quotes", "a'; touch CANARY; 'b"},
      {"double quotes", "a\"; touch CANARY; \"b"},
      {"both quotes", "'\"'\"`touch CANARY`"},
      {"line ends", "a\ntouch CANARY\r\n#SBATCH --evil\n"},
      {"plot script", "a\" ; system('touch CANARY') ; set title \"b"},
      {"plot data", "< touch CANARY"},
      {"backslashes", "a\\\"; touch CANARY; \\"},
      {"format", "%s%n%d%08x %j %a"},
      {"colour", "\x1b[31mred\x1b[0m"},
      {"cursor", "a\x1b[2J\x1b[1;1Hb\r\b\b"},
      {"title", "\x1b]0;evil\x07"},
      {"bell and delete", "a\a\x7f"},
      {"NUL", std::string("a\0b", 3)},
      {"C1 controls",
       "a\xc2\x9b"
       "31mb\xc2\x9d"},
      {"HTML", "<script>document.title='x'</script>&lt;b&gt;"},
      {"XML", "]]></text><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///'>]>"},
      {"attribute", "\" onload=\"evil()"},
      {"SQL", "Robert'); DROP TABLE points; --"},
      {"SQL identifier", "\"; DROP TABLE points; --"},
      {"formula", "=HYPERLINK(\"http://localhost\",\"x\")"},
      {"formula +", "+1+cmd|' /C calc'!A0"},
      {"formula -", "-2+3+cmd|' /C calc'!A0"},
      {"formula @", "@SUM(1+1)"},
      {"formula after tab", "\t=1+1"},
      {"formula after CR", "\r=1+1"},
      {"formula after apostrophe", "'=1+1"},
      {"CSV", "a,b\",c\n=1"},
      {"JSON", "\"},{\"x\":\"\\u0000"},
      {"right to left", "a\u202egnp.exe"},
      {"isolates", "\u2066a\u2069\u200f\u061c"},
      {"Arabic and Hebrew",
       "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd"},
      {"Unicode", "Mod\u00e8le \u6a21\u578b \U0001f680"},
      {"line separators", "a\u2028b\u2029c"},
      {"option", "--version"},
      {"path", "../../../etc/passwd"},
      {"spaces", "  a  b  "},
      {"placeholder", "QNAME0QQQ QNAME1QQQQ"},
      {"long", std::string(300, 'x')},
      {"not UTF-8", "a\xff\xfe\x9b[31m\xc3(", false},
      {"overlong", "a\xc0\xaf\xe0\x80\xaf", false},
      {"surrogate", "a\xed\xa0\x80", false},
  };
  return names;
}

// Returns true if a terminal would show `text` unchanged: it has no control
// characters except line ends, no bidirectional formatting, and is valid UTF-8.
inline bool IsSafeForTerminal(absl::string_view text) {
  return EscapeControls(text) == text && text.find('\t') == text.npos;
}

}  // namespace weir

#endif  // WEIR_TESTS_HOSTILE_NAMES_H_
