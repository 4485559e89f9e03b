// The Python module hiernorm._core: a table of contents.
#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_core, m) {
    hiernorm::bind_interrupt(m);
    hiernorm::bind_kernels(m);
    hiernorm::bind_layout(m);
    hiernorm::bind_encoding(m);
    hiernorm::bind_index(m);
    hiernorm::bind_addition(m);
    hiernorm::bind_checks(m);
    hiernorm::bind_segments(m);
    hiernorm::bind_matching(m);
}
