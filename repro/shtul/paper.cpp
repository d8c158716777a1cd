// Shtul, Baquero & Almeida 2020, Age-Partitioned Bloom Filters.
#include "repro/papers.hpp"

namespace sluice::repro {

Paper shtul_paper() {
  return {
      .name = "shtul",
      .title = "Shtul, Baquero & Almeida 2020, Age-Partitioned Bloom Filters",
      .published = Published::parse(published_csv("shtul")),
      .experiments = {},
      .notes = {},
  };
}

}  // namespace sluice::repro
