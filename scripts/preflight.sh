#!/bin/sh
# Says in one sentence what this machine lacks: preflight.sh python|compiler|headers ...
set -eu

python=${PYTHON:-python3}

stop() {
    printf '%s\n' "$1" \
        "  Debian, Ubuntu:  sudo apt install g++ python3-dev python3-venv" \
        "  Fedora:          sudo dnf install gcc-c++ python3-devel" \
        "  macOS:           xcode-select --install" >&2
    exit 1
}

check_python() {
    command -v "$python" >/dev/null 2>&1 ||
        stop "Setting up needs Python 3.10 or newer, and '$python' was not found; please install it:"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        stop "Setting up needs Python 3.10 or newer, and '$python' is $("$python" -V 2>&1); name another with 'make PYTHON=...' or install one:"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "Setting up needs Python's venv module, and '$python' has none; please install it:"
}

# $CXX is the only candidate if set, as it is for CMake.
check_compiler() {
    found=
    for candidate in ${CXX:-c++ g++ clang++}; do
        # Running it, since macOS has a /usr/bin/c++ that only offers to install one.
        if "$candidate" --version >/dev/null 2>&1; then
            found=$candidate
            break
        fi
    done
    [ -n "$found" ] ||
        stop "Building needs a C++ compiler, and none was found (tried: ${CXX:-c++ g++ clang++}); please install one:"
    # ${CXX:-...} unquoted, for a $CXX such as "ccache g++".
    # shellcheck disable=SC2086
    echo 'int main() {}' | ${CXX:-$found} -std=c++20 -fsyntax-only -x c++ - 2>/dev/null ||
        stop "Building needs a C++20 compiler, and '${CXX:-$found}' does not take -std=c++20; please install a newer one:"
}

check_headers() {
    "$python" -c '
import pathlib, sys, sysconfig
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' ||
        stop "Building needs Python's C headers, and '$python' has none; please install them:"
}

for check in "$@"; do
    "check_$check"
done
