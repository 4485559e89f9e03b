// Ctrl-C: the core asks Python whether a signal has come.
#include "interrupt.hpp"

#include "bindings.hpp"

namespace nb = nanobind;

namespace hiernorm {
namespace {

unsigned long main_thread = 0;

// Python handles signals in its main thread alone; others need not ask.
void raise_signals() {
    if (PyThread_get_thread_ident() != main_thread) return;
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void bind_interrupt(nb::module_&) {
    const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
    main_thread = nb::cast<unsigned long>(thread.attr("ident"));
    set_interrupt_check(raise_signals);
}

}  // namespace hiernorm
