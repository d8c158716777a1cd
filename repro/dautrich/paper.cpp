// Dautrich & Ravishankar 2013, Inferential Time-Decaying Bloom Filters.
#include "repro/papers.hpp"

namespace sluice::repro {

Paper dautrich_paper() {
  return {
      .name = "dautrich",
      .title = "Dautrich & Ravishankar 2013, Inferential Time-Decaying Bloom Filters",
      .published = Published::parse(published_csv("dautrich")),
      .experiments = {},
      .notes = {},
  };
}

}  // namespace sluice::repro
