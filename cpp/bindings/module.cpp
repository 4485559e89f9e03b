// The Python module hiernorm._core: a table of contents.
#define HIERNORM_FILLS_NUMPY_API
#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "numpy_api.hpp"

NB_MODULE(_core, m) {
    if (PyArray_ImportNumPyAPI() < 0) throw nanobind::python_error();
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
