// Guo et al. 2010, The Dynamic Bloom Filters.
#include "repro/papers.hpp"

namespace sluice::repro {

Paper guo_paper() {
  return {
      .name = "guo",
      .title = "Guo et al. 2010, The Dynamic Bloom Filters",
      .published = Published::parse(published_csv("guo")),
      .experiments = {},
      .notes = {},
  };
}

}  // namespace sluice::repro
