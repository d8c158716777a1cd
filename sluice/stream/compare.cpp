#include "sluice/stream/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Where `bytes` is the size of the whole filter; that of `dynamic` is one of many tables.
bool has_fixed_size(const FilterInfo& info) {
  return info.name != "dynamic" &&
         std::ranges::find(info.parameters, "bytes", &ParameterInfo::name) != info.parameters.end();
}

AnyFilter window_of(const std::string& filter, std::uint64_t size, double fpr) {
  return AnyFilter(
      Window::make({.spec = {WindowSpec::Kind::count, size}, .filter = filter, .fpr = fpr}));
}

// The least error, by steps of a fifth of a decade, for which a window fits into `memory` bytes.
// One that is planned for less than it can hold would grow instead. What a window needs besides its
// table is allowed for.
double least_fpr(const std::string& filter, std::uint64_t size, std::uint64_t memory) {
  constexpr double kWorst = 0.3;      // beyond it nothing is worth planning
  constexpr double kStep = 0.630957;  // 10^(-1/5)
  const std::uint64_t most = memory + memory / 64 + 4096;
  double least = 0;
  for (double fpr = kWorst; fpr > 1e-12; fpr *= kStep) {
    try {
      if (window_of(filter, size, fpr).stats().bytes > most) break;
      least = fpr;
    } catch (const BadParameters&) {  // not at this error: perhaps at a smaller one
    }
  }
  if (least > 0) return least;
  throw BadParameters(fmt::format(
      "filter '{}' does not hold a window of {} in {}, not even with an error of {}: give it more "
      "memory, or a smaller window",
      filter, format_count(size), format_size(memory), kWorst));
}

}  // namespace

StreamTruth::StreamTruth(std::optional<std::uint64_t> window)
    : window_(window.value_or(kNever - 1)), slots_(1024) {}

// Digests are uniform already: their low bits are the place.
StreamTruth::Slot& StreamTruth::find(const Digest& digest) noexcept {
  std::size_t at = digest.lo & (slots_.size() - 1);
  while (slots_[at].delivery != 0 && slots_[at].digest != digest)
    at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void StreamTruth::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.delivery != 0) find(slot.digest) = slot;
}

std::uint64_t StreamTruth::age_of(const Digest& digest) noexcept {
  const Slot& slot = find(digest);
  return slot.delivery == 0 ? kNever : deliveries_ - slot.delivery + 1;
}

void StreamTruth::deliver(const Digest& digest) {
  if (keys_ * 2 >= slots_.size()) grow();
  Slot& slot = find(digest);
  keys_ += slot.delivery == 0;
  slot = {digest, ++deliveries_};
}

std::uint64_t StreamTruth::observe(const Digest& digest) {
  const std::uint64_t age = age_of(digest);
  if (distinct(age)) deliver(digest);
  return age;
}

double CompareCounts::false_positive_rate() const noexcept {
  return share(false_positives, distinct);
}

double CompareCounts::false_negative_rate() const noexcept {
  return share(false_negatives, duplicates());
}

CompareCounts& CompareCounts::operator+=(const CompareCounts& other) noexcept {
  records += other.records;
  distinct += other.distinct;
  false_positives += other.false_positives;
  false_negatives += other.false_negatives;
  by_slack += other.by_slack;
  return *this;
}

AnyFilter make_compared(std::string_view name_and_settings, const CompareWish& wish) {
  const std::size_t comma = std::min(name_and_settings.find(','), name_and_settings.size());
  std::string name(name_and_settings.substr(0, comma));
  // What remembers every key exactly goes by another name where it also forgets.
  if (wish.window && name == "exact") name = "exact-window";
  const FilterInfo& info = filter_named(name);
  const std::string text = name + std::string(name_and_settings.substr(comma));
  const auto given = [&](std::string_view setting) {
    const std::size_t begin = std::min(comma + 1, name_and_settings.size());
    const Settings settings = Settings::parse(name_and_settings.substr(begin));
    return std::ranges::find(settings.pairs(), setting,
                             &std::pair<std::string, std::string>::first) != settings.pairs().end();
  };
  const bool sized = wish.memory && has_fixed_size(info) && !given("bytes");
  const std::string with_size = sized ? fmt::format("{},bytes={}", text, *wish.memory) : text;
  if (!wish.window) return make_filter(with_size, wish.wish);
  // Whether a filter ages is asked of one that is made.
  const bool ages = make_filter(text, {.keys = *wish.window, .fpr = wish.wish.fpr}).ages();
  if (!ages) return make_filter(with_size, wish.wish);
  const bool fit = wish.memory && name != "exact-window" && !given("bytes") && !given("fpr");
  return window_of(text, *wish.window,
                   fit ? least_fpr(text, *wish.window, *wish.memory) : wish.wish.fpr);
}

Comparison::Comparison(std::optional<std::uint64_t> window) : window_(window), truth_(window) {
  digests_.reserve(kChunk);
  ages_.resize(kChunk);
  verdicts_.resize(kChunk);
}

void Comparison::add(std::string name, AnyFilter filter) {
  Entry entry{std::move(name), std::move(filter), std::nullopt, 0, {}, 0, {}};
  if (const Window* window = entry.filter.as<Window>()) {
    const auto size = static_cast<double>(window->params().spec.size);
    entry.own.emplace(window_);
    entry.most_age = static_cast<std::uint64_t>(std::ceil((1 + window->slack()) * size));
  }
  entries_.push_back(std::move(entry));
}

void Comparison::feed(std::span<const Digest> digests) {
  while (!digests.empty()) {
    const std::size_t count = std::min(kChunk - digests_.size(), digests.size());
    digests_.insert(digests_.end(), digests.begin(),
                    digests.begin() + static_cast<std::ptrdiff_t>(count));
    digests = digests.subspan(count);
    if (digests_.size() == kChunk) judge();
  }
}

void Comparison::judge() {
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    ages_[i] = truth_.observe(digests_[i]);
    stream_.distinct += truth_.distinct(ages_[i]);
  }
  stream_.records += digests_.size();
  for (Entry& entry : entries_) judge(entry);
  judged_ += digests_.size();
  digests_.clear();
  thin_out();
}

void Comparison::judge(Entry& entry) {
  using Clock = std::chrono::steady_clock;
  const std::span<const Digest> digests = digests_;
  const std::span<Verdict> verdicts = std::span(verdicts_).first(digests.size());
  const Clock::time_point start = Clock::now();
  for (std::size_t at = 0; at < digests.size(); at += kBatch) {
    const std::size_t count = std::min(kBatch, digests.size() - at);
    entry.filter.observe(digests.subspan(at, count), verdicts.subspan(at, count));
  }
  entry.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  // A chunk is a multiple of a stride, or a stride of a chunk.
  const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(stride_, kChunk));
  for (std::size_t at = 0; at < digests.size(); at += step) {
    const CompareCounts part = count(entry, at, std::min(at + step, digests.size()));
    if ((judged_ + at) % stride_ == 0) entry.points.emplace_back();
    entry.points.back() += part;
    entry.counts += part;
  }
}

CompareCounts Comparison::count(Entry& entry, std::size_t begin, std::size_t end) const {
  CompareCounts counts{.records = end - begin};
  for (std::size_t i = begin; i < end; ++i) {
    const bool held = verdicts_[i] == Verdict::duplicate;
    const bool distinct = truth_.distinct(ages_[i]);
    counts.distinct += distinct;
    const bool excused = by_slack(entry, digests_[i], held);
    if (held != distinct) continue;
    if (excused)
      ++counts.by_slack;
    else
      ++(held ? counts.false_positives : counts.false_negatives);
  }
  return counts;
}

// Whether a window filter's own deliveries make its verdict right.
bool Comparison::by_slack(Entry& entry, const Digest& digest, bool held) const {
  if (!entry.own) return false;
  const std::uint64_t age = entry.own->age_of(digest);
  if (held) return age <= entry.most_age;
  entry.own->deliver(digest);
  return entry.own->distinct(age);
}

void Comparison::thin_out() {
  while ((judged_ + stride_ - 1) / stride_ > kMostPoints) {
    stride_ *= 2;
    for (Entry& entry : entries_) {
      std::vector<CompareCounts>& points = entry.points;
      for (std::size_t i = 0; i < points.size(); ++i)
        if (i % 2 == 1)
          points[i / 2] += points[i];
        else
          points[i / 2] = points[i];
      points.resize((points.size() + 1) / 2);
    }
  }
}

std::vector<CompareResult> Comparison::finish() {
  judge();
  std::vector<CompareResult> results;
  for (const Entry& entry : entries_)
    results.push_back({.name = entry.name,
                       .settings = entry.filter.settings().text(),
                       .stats = entry.filter.stats(),
                       .counts = entry.counts,
                       .seconds = entry.seconds,
                       .points = entry.points});
  return results;
}

}  // namespace sluice
