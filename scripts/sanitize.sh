#!/usr/bin/env bash
# Builds and runs the core's C++ tests under AddressSanitizer with UBSan, then ThreadSanitizer.
#
# Usage: scripts/sanitize.sh [SANITIZERS ...]       default: address,undefined thread
# CMake and Ninja come from .venv ("make sanitize" puts them there) or from PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"

for tool in cmake ninja; do
    command -v "$tool" >/dev/null || {
        echo "scripts/sanitize.sh needs $tool, and it was not found; run 'make sanitize'" >&2
        exit 1
    }
done

# The caller's options come last and therefore win.
export ASAN_OPTIONS="halt_on_error=1:detect_stack_use_after_return=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}"

# ThreadSanitizer cannot place its shadow under the wide address randomisation of newer kernels.
thread_launcher=(env)
if setarch "$(uname -m)" -R true 2>/dev/null; then
    thread_launcher=(setarch "$(uname -m)" -R)
fi

check() {
    local sanitizers=$1 dir=build/sanitize-${1//,/-}
    local log=$dir/build.log launcher=(env)
    mkdir -p "$dir"
    echo "==> building core_tests with -fsanitize=$sanitizers"
    if ! {
        cmake -S . -B "$dir" -G Ninja \
            -DCMAKE_BUILD_TYPE=RelWithDebInfo \
            -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$PWD/$dir/bin" \
            -DHIERNORM_BUILD_CORE_TESTS=ON \
            -DHIERNORM_SANITIZE="$sanitizers" &&
            cmake --build "$dir" --target core_tests
    } >"$log" 2>&1; then
        cat "$log" >&2
        return 1
    fi
    echo "==> running core_tests with -fsanitize=$sanitizers"
    if [[ $sanitizers == thread ]]; then
        launcher=("${thread_launcher[@]}")
    fi
    "${launcher[@]}" "$dir/bin/core_tests"
}

if (($# == 0)); then
    set -- address,undefined thread
fi
for sanitizers in "$@"; do
    check "$sanitizers"
done
echo "==> no fault found under: $*"
