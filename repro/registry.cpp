#include "repro/papers.hpp"

namespace sluice::repro {

const std::vector<Paper>& papers() {
  static const std::vector<Paper> all = {
      koloniari_paper(), shtul_paper(), dutta_paper(), guo_paper(), dautrich_paper(),
  };
  return all;
}

}  // namespace sluice::repro
