#include "kept.hpp"

#include <algorithm>
#include <optional>

namespace sluice::bench {
namespace {

// Numbers from here on are only asked for. digest_of doubles them: 2^63 would start over at 0.
constexpr std::uint64_t kNeverSeen = std::uint64_t{1} << 62;

}  // namespace

bool in_catalogue(std::string_view settings) {
  const std::string_view name = settings.substr(0, settings.find(','));
  return std::ranges::any_of(catalogue(),
                             [&](const FilterInfo& info) { return info.name == name; });
}

Kept::Kept(const std::string& settings, std::uint64_t keys, double fpr, bool told,
           MemoryResource& memory)
    : filter_(make_filter(settings, {.keys = told ? std::optional(keys) : std::nullopt, .fpr = fpr},
                          memory)),
      set_(!filter_.ages() && filter_.promises().no_false_negatives),
      keys_(keys),
      lines_(forecast_filter(settings, {.keys = keys, .fpr = fpr}).lines),
      left_(keys) {
  if (filter_.ages()) {
    const unsigned generations = std::max(1u, filter_.generations());
    left_ = generation_ = (keys + generations - 1) / generations;
  }
  resize(kLap);
}

void Kept::resize(std::size_t batch) {
  digests_.resize(batch);
  verdicts_.resize(batch);
}

void Kept::fill(double share) {
  const auto keys = static_cast<std::uint64_t>(share * static_cast<double>(keys_));
  for (std::uint64_t done = 0; done + digests_.size() <= keys; done += digests_.size()) {
    draw(0);
    make_room(Verb::observe);
    apply(Verb::observe);
  }
}

void Kept::settle(double share) {
  // A window, and some generations more; where chance forgets, several times what it remembers.
  fill(set_ ? share : filter_.ages() ? 1.1 : 2.5);
}

void Kept::refill() {
  if (!set_) return;
  filter_.clear();
  left_ = keys_;
  fill(1);
}

void Kept::draw(double duplicates) {
  const std::uint64_t near = std::max<std::uint64_t>(1, std::min(next_ - 1, keys_ / 10 * 9));
  for (Digest& digest : digests_) {
    const bool again = duplicates > 0 && random_.next_unit() < duplicates;
    digest = digest_of(again ? next_ - 1 - random_.next() % near : next_++);
  }
}

// A set that has no room left for a batch is cleared.
void Kept::make_room(Verb verb) {
  if (!set_ || verb == Verb::may_contain) return;
  if (left_ < digests_.size()) {
    filter_.clear();
    left_ = keys_;
  }
  left_ -= digests_.size();
}

void Kept::end_generation() {
  filter_.rotate();
  left_ = generation_;
  ++ended_;
}

void Kept::observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
  if (!filter_.ages()) {
    filter_.observe(digests, verdicts);
    return;
  }
  for (std::size_t done = 0; done < digests.size();) {
    done += filter_.admit(digests.subspan(done), verdicts.subspan(done), left_, Anchor::delivered);
    if (left_ == 0) end_generation();
  }
}

void Kept::insert(std::span<const Digest> digests) {
  if (!filter_.ages()) {
    filter_.insert(digests);
    return;
  }
  while (!digests.empty()) {
    const std::size_t now = std::min<std::uint64_t>(left_, digests.size());
    filter_.insert(digests.first(now));
    digests = digests.subspan(now);
    if ((left_ -= now) == 0) end_generation();
  }
}

void Kept::apply(Verb verb, bool batched) {
  const std::span<const Digest> digests(digests_);
  const std::span<Verdict> verdicts(verdicts_);
  const std::size_t step = batched ? digests.size() : 1;
  for (std::size_t i = 0; i < digests.size(); i += step) {
    if (verb == Verb::observe) observe(digests.subspan(i, step), verdicts.subspan(i, step));
    if (verb == Verb::may_contain)
      filter_.may_contain(digests.subspan(i, step), verdicts.subspan(i, step));
    if (verb == Verb::insert) insert(digests.subspan(i, step));
  }
}

double Kept::ns(std::uint64_t keys, double duplicates, Verb verb, bool batched) {
  LapClock clock;
  for (std::uint64_t done = 0; done < keys; done += digests_.size()) {
    draw(duplicates);
    make_room(verb);
    clock.start();
    apply(verb, batched);
    clock.stop();
  }
  return clock.median_ns(digests_.size());
}

double Kept::measured_fpr(std::uint64_t keys) {
  std::uint64_t wrong = 0, asked = 0;
  for (; asked < keys; asked += digests_.size()) {
    for (std::size_t i = 0; i < digests_.size(); ++i)
      digests_[i] = digest_of(kNeverSeen + asked + i);
    filter_.may_contain(digests_, verdicts_);
    wrong += static_cast<std::uint64_t>(std::ranges::count(verdicts_, Verdict::duplicate));
  }
  return static_cast<double>(wrong) / static_cast<double>(asked);
}

double Kept::bits_per_key() const {
  return static_cast<double>(bytes()) * 8 / static_cast<double>(keys_);
}

}  // namespace sluice::bench
