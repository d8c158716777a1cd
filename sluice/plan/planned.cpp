#include <algorithm>
#include <array>
#include <mutex>

#include "sluice/plan/plan.hpp"

namespace sluice {
namespace {

struct Kept {
  PlanScope scope = PlanScope::all;
  std::uint64_t used = 0;  // when it was last asked for: the oldest makes room
  std::shared_ptr<const Planning> planning;
};

// One for the process: threads of a host ask for the same few plans.
class Cache {
 public:
  std::shared_ptr<const Planning> find(const PlanRequest& request, PlanScope scope) {
    const std::lock_guard lock(mutex_);
    return known(request, scope);
  }

  // What is kept then: of threads that plan the same at once, the first one's.
  std::shared_ptr<const Planning> keep(PlanScope scope, std::shared_ptr<const Planning> planning) {
    const std::lock_guard lock(mutex_);
    if (auto others = known(planning->request, scope)) return others;
    *std::ranges::min_element(kept_, {}, &Kept::used) = {scope, ++now_, planning};
    return planning;
  }

 private:
  std::shared_ptr<const Planning> known(const PlanRequest& request, PlanScope scope) {
    for (Kept& each : kept_)
      if (each.planning && each.scope == scope && each.planning->request == request) {
        each.used = ++now_;
        return each.planning;
      }
    return nullptr;
  }

  std::mutex mutex_;
  std::uint64_t now_ = 0;
  std::array<Kept, kPlansKept> kept_;
};

}  // namespace

std::shared_ptr<const Planning> planned(const PlanRequest& request, PlanScope scope) {
  static Cache cache;
  if (auto known = cache.find(request, scope)) return known;
  return cache.keep(scope, std::make_shared<const Planning>(plan(request, scope)));
}

}  // namespace sluice
