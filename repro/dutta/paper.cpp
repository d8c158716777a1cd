// Dutta, Bhattacherjee & Narang 2012, Towards "Intelligent Compression" in Streams.
#include "repro/papers.hpp"

namespace sluice::repro {

Paper dutta_paper() {
  return {
      .name = "dutta",
      .title = "Dutta, Bhattacherjee & Narang 2012, Towards \"Intelligent Compression\" in Streams",
      .published = Published::parse(published_csv("dutta")),
      .experiments = {},
      .notes = {},
  };
}

}  // namespace sluice::repro
