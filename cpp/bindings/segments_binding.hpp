// Segments of a database: codes out to files, mapped arrays in, search over many.
#pragma once

#include <nanobind/nanobind.h>

namespace hiernorm {

void bind_segments(nanobind::module_& m);

}  // namespace hiernorm
