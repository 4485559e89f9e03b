// What the module is made of: arrays in, arrays out; no logic of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace hiernorm {

void bind_kernels(nanobind::module_& m);   // the instruction set in use
void bind_interrupt(nanobind::module_& m);  // Ctrl-C
void bind_layout(nanobind::module_& m);    // sizes, and the tensors of a segment file
void bind_encoding(nanobind::module_& m);  // Encoding
void bind_index(nanobind::module_& m);     // Index
void bind_addition(nanobind::module_& m);  // Addition
void bind_checks(nanobind::module_& m);    // BlockChecks, checksums of blocks
void bind_segments(nanobind::module_& m);  // SegmentIndex, search over many of them
void bind_matching(nanobind::module_& m);  // ByteSet, matches of two of them

}  // namespace hiernorm
