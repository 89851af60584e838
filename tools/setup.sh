# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Sourced by ./run, ./check and tools/check, with $root set to the source tree.
# All output is on stderr, as stdout belongs to weir.

say() { echo "$*" >&2; }

# Prints the packages of the given lists that dpkg does not have, one per line;
# with --optional those marked "?", else the others.
missing_packages() {
  mark=
  if [ "$1" = --optional ]; then mark='?' && shift; fi
  # shellcheck disable=SC2016  # dpkg's own variables
  sed 's/#.*//' "$@" | awk -v mark="$mark" 'NF && $2 == mark {print $1}' |
    while read -r package; do
      case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
        *' installed') ;;
        *) echo "$package" ;;
      esac
    done
}

# install_packages LIST...: installs missing packages of the lists.
install_packages() {
  # On other systems, CMake reports what is missing.
  command -v dpkg-query >/dev/null || return 0
  missing=$(missing_packages "$@" | tr '\n' ' ')
  if [ "$(id -u)" -eq 0 ]; then
    as_root=
  elif command -v sudo >/dev/null; then
    as_root=sudo
  else
    as_root=none
  fi
  if [ -n "$missing" ]; then
    if [ "${WEIR_NO_APT:-}" = 1 ] || [ "$as_root" = none ]; then
      say "error: these packages are missing: $missing"
      say "install them: apt-get install --no-install-recommends $missing"
      exit 3
    fi
    say "installing: $missing"
    if ! $as_root apt-get update >&2 || ! apt_install "$missing"; then
      say "error: cannot install: $missing"
      exit 3
    fi
  fi
  [ "${WEIR_NO_APT:-}" = 1 ] || [ "$as_root" = none ] || install_optional "$@"
}

# shellcheck disable=SC2086  # a list of packages
apt_install() {
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $1 >&2
}

# Optional packages never fail a run: tests that need them report it.
install_optional() {
  for package in $(missing_packages --optional "$@"); do
    if apt-cache show "$package" >/dev/null 2>&1; then
      apt_install "$package" || say "note: cannot install $package"
    fi
  done
}

# Prints the number of jobs: one per processor and per 2 GiB of memory.
num_jobs() {
  if [ -n "${CMAKE_BUILD_PARALLEL_LEVEL:-}" ]; then
    echo "$CMAKE_BUILD_PARALLEL_LEVEL"
    return
  fi
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  awk -v processors="$(nproc)" -v limit="$limit" '
    $1 == "MemTotal:" {
      bytes = $2 * 1024
      if (limit != "max" && limit + 0 < bytes) bytes = limit + 0
      jobs = int(bytes / 2^31)
      if (jobs > processors) jobs = processors
      print jobs < 1 ? 1 : jobs
    }' /proc/meminfo
}

# Prints the path of an installed weir that was built from the revision of this
# tree, which must have no changes.
installed_weir() {
  path=$(command -v weir) || return 1
  version=$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
  if [ -e "$root/.git" ]; then
    revision=$(git -c "safe.directory=$root" -C "$root" describe --always \
      --dirty --tags --abbrev=12 2>/dev/null) || return 1
  else
    revision=unknown # of a tarball, for which only the version counts
  fi
  case $revision in
    *-dirty) return 1 ;;
  esac
  [ "$("$path" --version 2>/dev/null)" = "weir $version (git $revision)" ] || return 1
  echo "$path"
}

# A build folder that was copied from another place with the tree is invalid.
is_configured() {
  [ -f "$root/build/release/build.ninja" ] &&
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" \
      "$root/build/release/CMakeCache.txt"
}

# configure ARG...
configure() {
  is_configured || set -- --fresh "$@"
  (cd "$root" && cmake --preset release "$@") >&2 || exit 3
}

# build_program NAME: builds only this program, which needs no test library.
# Quiet if it was built before.
build_program() {
  is_configured || configure -DBUILD_TESTING=OFF
  if [ -x "$root/build/release/bin/$1" ]; then quiet=--quiet; else quiet=; fi
  ninja -C "$root/build/release" -j "$(num_jobs)" $quiet "$1" >&2
}

# Builds everything, including tests.
build_all() {
  configure -DBUILD_TESTING=ON
  ninja -C "$root/build/release" -j "$(num_jobs)" >&2
}
