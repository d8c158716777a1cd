#include "sluice/infer/window_evidence.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

Pace pace_of(const Window& window, Nanoseconds time) {
  return {static_cast<double>(window.params().spec.size),
          static_cast<double>(window.generation_size()),
          static_cast<double>(window.position(time))};
}

}  // namespace

// The older is in a stage of its own: were the key as old as that, nothing else would be needed to
// explain it. The mass of those ages is spread over all that lie behind the younger.
model::AgeEvidence both(const model::AgeEvidence& a, const model::AgeEvidence& b, Anchor anchor,
                        double hold) {
  model::AgeEvidence young = a.from <= b.from ? a : b;
  const model::AgeEvidence& old = a.from <= b.from ? b : a;
  if (anchor == Anchor::refreshed || !(old.beyond > 0) || !(hold > young.to)) return young;
  const double length = std::min(old.to, hold) - old.from;
  if (length > 0) young.inside += young.beyond / old.beyond * length / (hold - young.to);
  return young;
}

bool WindowEvidence::can_read(const Window& window) {
  const std::string_view filter = window.filter_name();
  return window.generations() > 0 && (filter == "cohort" || filter == "timing");
}

WindowEvidence::WindowEvidence(const Window& window) : window_(window) {
  look_up_stages();
}

void WindowEvidence::look_up_stages() {
  const Growth& growth = window_.growth();
  const Pace pace = pace_of(window_, window_.clock().now());
  const Anchor anchor = window_.params().anchor;
  stages_.clear();
  for (std::size_t i = growth.stage_count(); i-- > 0;) {
    const AnyFilter& stage = growth.stage(i);
    if (const auto* cohort = stage.as<Cohort>())
      stages_.push_back(Stage<Cohort>{cohort, CohortReader(*cohort, pace, anchor)});
    else if (const auto* timing = stage.as<Timing>())
      stages_.push_back(Stage<Timing>{timing, TimingReader(*timing, pace, anchor)});
    else
      assert(false && "a stage shows no ages");
  }
  changes_ = growth.changes();
}

Pace WindowEvidence::pace(Nanoseconds time, double keys_a_tick) {
  if (changes_ != window_.growth().changes()) look_up_stages();
  Pace pace = pace_of(window_, time);
  // Of keys that are stamped anew, how many bear this generation is not in proportion to its time.
  if (!window_.params().spec.by_time() || window_.params().anchor == Anchor::refreshed) return pace;
  std::uint64_t keys = 0;
  for (const AnyStage& stage : stages_)
    keys += std::visit([](const auto& each) { return each.filter->keys_aged(0); }, stage);
  const double as_written = keys_a_tick > 0 ? static_cast<double>(keys) / keys_a_tick : pace.block;
  pace.position = std::min(std::max(pace.position, as_written), pace.block);
  return pace;
}

std::optional<model::AgeEvidence> WindowEvidence::read(const Digest& digest, const Pace& pace) {
  if (changes_ != window_.growth().changes()) look_up_stages();
  const double hold = pace.block * window_.generations() + pace.position;
  std::optional<model::AgeEvidence> all;
  for (const AnyStage& stage : stages_) {
    const auto one = std::visit(
        [&](const auto& each) { return each.reader.read(*each.filter, digest, pace); }, stage);
    if (!one) continue;
    all = all ? both(*all, *one, window_.params().anchor, hold) : *one;
  }
  return all;
}

}  // namespace sluice
