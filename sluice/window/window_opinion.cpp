// Windows whose filter is overruled: see Window::SecondOpinion.
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/window/window.hpp"

namespace sluice {

std::size_t Window::observe(std::span<const Digest> digests, std::span<Verdict> verdicts,
                            const SecondOpinion& opinion) {
  check_length("verdicts", verdicts.size(), digests.size());
  if (!while_memory_lasts([&] { make_table(); })) return 0;
  if (params().spec.by_time()) return admit_now(digests, verdicts, 0, opinion);
  return pace(digests, verdicts, opinion);
}

std::size_t Window::pace(std::span<const Digest> digests, std::span<Verdict> verdicts,
                         const SecondOpinion& opinion) {
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (!admit_one(digests[i], verdicts[i], left_, i, opinion)) return i;
    if (left_ > 0) continue;
    growth_->rotate();
    left_ = generation_size();
  }
  return digests.size();
}

// With `refreshed` the filter writes every key that it observes, so it is only asked first. The
// second opinion learns from the record, which cannot be undone: if the key cannot be written again
// it keeps its age. False: a new key could not be written.
bool Window::admit_one(const Digest& digest, Verdict& verdict, std::uint64_t& budget,
                       std::size_t record, const SecondOpinion& opinion) {
  const bool refreshed = params().anchor == Anchor::refreshed;
  const std::span one(&digest, 1);
  Verdict unread{};
  if (refreshed)
    growth_->may_contain(one, std::span(&verdict, 1));
  else if (growth_->admit(one, std::span(&verdict, 1), budget, params().anchor) == 0)
    return false;
  const bool known = verdict == Verdict::duplicate;
  if (known) verdict = opinion(record);
  if (refreshed || (known && verdict == Verdict::distinct))
    return growth_->admit(one, std::span(&unread, 1), budget, Anchor::refreshed) == 1 || known;
  return true;
}

// Of a time window, all in the present generation; `first` is the place of the first in its batch.
std::size_t Window::admit_now(std::span<const Digest> digests, std::span<Verdict> verdicts,
                              std::size_t first, const SecondOpinion& opinion) {
  if (clock_.owes() && !believe_claimant()) return 0;
  std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < digests.size(); ++i)
    if (!admit_one(digests[i], verdicts[i], unlimited, first + i, opinion)) return i;
  return digests.size();
}

}  // namespace sluice
