#!/usr/bin/env bash
# Runs the core's C++ tests with kernels that this processor may lack: AVX-512 and AVX-512 VNNI
# through SIMDe (portable C++ for each intrinsic), NEON through a cross-compiler and QEMU.
#
# Usage: scripts/emulate.sh [avx512] [neon]         default: both
# Builds into build/emulate-*; the package and its build are not touched.
# CMake and Ninja come from .venv ("make emulate" puts them there) or from PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"

# need WHAT APT_PACKAGE COMMAND...: says what is missing and how to get it.
need() {
    local what=$1 package=$2
    shift 2
    "$@" >/dev/null 2>&1 || {
        echo "scripts/emulate.sh needs $what, and it was not found; Debian, Ubuntu: sudo apt install $package" >&2
        exit 1
    }
}

has_simde() {
    echo '#include <simde/x86/avx512.h>' | "${CXX:-c++}" -x c++ -fsyntax-only -
}

build() {
    local dir=$1 log=$1/build.log
    shift
    mkdir -p "$dir"
    echo "==> building core_tests in $dir"
    if ! { cmake -B "$dir" -G Ninja "$@" && cmake --build "$dir" --target core_tests; } >"$log" 2>&1; then
        cat "$log" >&2
        return 1
    fi
}

emulate_avx512() {
    local dir=build/emulate-avx512
    need "a C++ compiler" g++ command -v "${CXX:-c++}"
    need "SIMDe (simde/x86/avx512.h)" libsimde-dev has_simde
    build "$dir" -S tests/emulation -DCMAKE_BUILD_TYPE=Release
    run avx512 "$dir/core_tests"
}

emulate_neon() {
    local dir=build/emulate-neon
    need "aarch64-linux-gnu-g++" g++-aarch64-linux-gnu command -v aarch64-linux-gnu-g++
    need "qemu-aarch64-static" qemu-user-static command -v qemu-aarch64-static
    # The toolchain names the compiler; a $CXX of the caller is for this machine.
    CXX='' CXXFLAGS='' build "$dir" -S . -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_TOOLCHAIN_FILE="$PWD/tests/emulation/aarch64.cmake" -DHIERNORM_BUILD_CORE_TESTS=ON
    run neon qemu-aarch64-static -cpu max "$dir/core_tests"
}

# run FAMILY COMMAND...: passes only if the tests say that they ran the family.
run() {
    local family=$1 log=build/emulate-$1/tests.log
    shift
    echo "==> running core_tests with $family emulated"
    "$@" | tee "$log"
    grep -q "^kernels:.* $family" "$log" || {
        echo "scripts/emulate.sh: core_tests ran without the family '$family'" >&2
        return 1
    }
}

need cmake cmake command -v cmake
need ninja ninja-build command -v ninja
if (($# == 0)); then
    set -- avx512 neon
fi
for family in "$@"; do
    case $family in
    avx512 | neon) "emulate_$family" ;;
    *)
        echo "scripts/emulate.sh: '$family' is not one of: avx512, neon" >&2
        exit 2
        ;;
    esac
done
echo "==> the same bits as scalar under emulation: $*"
