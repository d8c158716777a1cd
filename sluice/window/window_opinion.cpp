// Windows whose filter is overruled: see Window::SecondOpinion.
#include <limits>

#include "sluice/window/window.hpp"

namespace sluice {

void Window::observe(std::span<const Digest> digests, std::span<Verdict> verdicts,
                     const SecondOpinion& opinion) {
  if (params_.spec.by_time())
    admit_now(digests, verdicts, 0, opinion);
  else
    pace(digests, verdicts, opinion);
}

void Window::pace(std::span<const Digest> digests, std::span<Verdict> verdicts,
                  const SecondOpinion& opinion) {
  for (std::size_t i = 0; i < digests.size(); ++i) {
    admit_one(digests[i], verdicts[i], left_, i, opinion);
    if (left_ > 0) continue;
    growth_->rotate();
    left_ = generation_size();
  }
}

// With `refreshed` the filter writes what it is asked: so it is only asked first.
void Window::admit_one(const Digest& digest, Verdict& verdict, std::uint64_t& budget,
                       std::size_t record, const SecondOpinion& opinion) {
  const bool refreshed = params_.anchor == Anchor::refreshed;
  const std::span one(&digest, 1);
  Verdict unread{};
  if (refreshed)
    growth_->may_contain(one, std::span(&verdict, 1));
  else
    growth_->admit(one, std::span(&verdict, 1), budget, params_.anchor);
  const bool known = verdict == Verdict::duplicate;
  if (known) verdict = opinion(record);
  if (refreshed || (known && verdict == Verdict::distinct))
    growth_->admit(one, std::span(&unread, 1), budget, Anchor::refreshed);
}

// Of a time window, all in the present generation; `first` is the place of the first in its batch.
void Window::admit_now(std::span<const Digest> digests, std::span<Verdict> verdicts,
                       std::size_t first, const SecondOpinion& opinion) {
  std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < digests.size(); ++i)
    admit_one(digests[i], verdicts[i], unlimited, first + i, opinion);
}

}  // namespace sluice
