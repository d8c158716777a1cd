// `sluice plan` with --tolerate, --sites or --failed: one filter over many sites.
#pragma once

#include <string>

#include "sluice/plan/plan.hpp"
#include "sluice/plan/sites.hpp"

namespace sluice::cli {

class Command;

struct SitesFlags {
  std::string sites, failed, tolerate, slicing, inner, rule, alive_fpr;
  bool given() const;
};

void add_sites_flags(Command& command, SitesFlags& flags);

// "horizontal", "vertical", "hv-diced", "vh-diced". Throws BadParameters.
model::Slicing parse_slicing(const std::string& text);
std::string name_of_slicing(model::Slicing slicing);
// "duplicate", "distinct", "hybrid=3". Throws BadParameters.
RuleWish parse_rule(const std::string& text);

// Prints the plan; `filter` is what the other flags ask for. Returns the exit code. Throws RunFailed
// if there is none.
int plan_sites(const SitesFlags& flags, PlanRequest filter, bool json);

}  // namespace sluice::cli
