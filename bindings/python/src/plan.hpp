// Plans as tuples, from which sluice/_plan.py makes its classes.
#pragma once

#include <nanobind/nanobind.h>

#include "sluice/plan/plan.hpp"

namespace sluice::python {

// None if there is no plan.
nanobind::object planning_tuple(const Planning* planning);

void bind_plan(nanobind::module_& m);

}  // namespace sluice::python
