// The papers, each in a folder of its own. published.csv of each is compiled in.
#pragma once

#include <string_view>

#include "repro/experiment.hpp"

namespace sluice::repro {

Paper koloniari_paper();
Paper shtul_paper();
Paper dutta_paper();
Paper guo_paper();
Paper dautrich_paper();

// The text of repro/PAPER/published.csv.
std::string_view published_csv(std::string_view paper);

}  // namespace sluice::repro
