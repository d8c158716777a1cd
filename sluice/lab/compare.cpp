#include "sluice/lab/compare.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

#include "sluice/window/window.hpp"

namespace sluice {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

ClockLimits limits_for(const std::optional<WindowSpec>& window) {
  return window && window->by_time() ? ClockLimits(window->size, window->size) : ClockLimits(1, 1);
}

}  // namespace

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

Comparison::Comparison(std::optional<WindowSpec> window)
    : window_(window),
      truth_(window),
      limits_(limits_for(window)),
      late_(std::make_unique<bool[]>(kBatch)) {
  digests_.reserve(kChunk);
  distinct_.resize(kChunk);
  verdicts_.resize(kChunk);
}

void Comparison::add(std::string name, AnyFilter filter) {
  Entry entry{std::move(name), std::move(filter), std::nullopt};
  if (entry.filter.window() != nullptr) entry.own.emplace(window_);
  entries_.push_back(std::move(entry));
}

void Comparison::feed(std::span<const Digest> digests, std::span<const Nanoseconds> times) {
  if (by_time()) return feed_timed(digests, times);
  while (!digests.empty()) {
    const std::size_t count = std::min(kChunk - digests_.size(), digests.size());
    digests_.insert(digests_.end(), digests.begin(),
                    digests.begin() + static_cast<std::ptrdiff_t>(count));
    digests = digests.subspan(count);
    if (digests_.size() == kChunk) judge();
  }
}

void Comparison::feed_timed(std::span<const Digest> digests, std::span<const Nanoseconds> times) {
  assert(digests.size() == times.size());
  for (std::size_t i = 0; i < digests.size(); ++i) {
    Nanoseconds time = times[i];
    const EventClock::Reading reading = clock_.read(digests[i], time, limits_);
    const bool over = truth_.rule().over(time, clock_.now());
    if (reading == EventClock::Reading::late || over) {
      ++found_.late;
    } else if (reading == EventClock::Reading::disbelieved) {
      ++found_.disbelieved;
    } else {
      digests_.push_back(digests[i]);
      times_.push_back(time);
      nows_.push_back(clock_.now());
      if (digests_.size() == kChunk) judge();
    }
  }
}

void Comparison::judge() {
  find_truth();
  for (Entry& entry : entries_) judge(entry);
  judged_ += digests_.size();
  if (!nows_.empty()) before_ = nows_.back();
  digests_.clear();
  times_.clear();
  nows_.clear();
  thin_out();
}

// The clock goes back only where its first time is replaced: windows have forgotten what came before.
bool Comparison::starts_afresh(std::size_t i) const {
  return by_time() && nows_[i] < (i > 0 ? nows_[i - 1] : before_);
}

void Comparison::find_truth() {
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    const std::int64_t now = by_time() ? nows_[i] : truth_.deliveries();
    const std::int64_t time = by_time() ? times_[i] : now;
    if (starts_afresh(i)) {
      truth_.forget();
      in_window_.clear();
    }
    const bool distinct = truth_.observe(digests_[i], time, now);
    distinct_[i] = distinct;
    found_.counts.distinct += distinct;
    if (distinct && by_time()) note_delivery(time, now);
  }
  found_.counts.records += digests_.size();
}

// In order but for late ones, which are few.
void Comparison::note_delivery(std::int64_t time, std::int64_t now) {
  in_window_.push_back(time);
  while (!truth_.rule().inside(in_window_.front(), now)) in_window_.pop_front();
  found_.most_keys = std::max<std::uint64_t>(found_.most_keys, in_window_.size());
}

void Comparison::ask(Entry& entry, std::size_t at, std::size_t count) {
  const auto digests = std::span<const Digest>(digests_).subspan(at, count);
  const auto verdicts = std::span(verdicts_).subspan(at, count);
  Window* window = by_time() ? entry.filter.window() : nullptr;
  const std::size_t judged =
      window == nullptr
          ? entry.filter.observe(digests, verdicts)
          : window->judge(digests, std::span<const Nanoseconds>(times_).subspan(at, count),
                          verdicts, std::span(late_.get(), count));
  if (judged == count) return;
  if (window == nullptr) entry.filter.observe(digests[judged]);  // says why
  throw NoMemory("there is no memory for more keys: compare fewer filters, or a shorter stream");
}

void Comparison::judge(Entry& entry) {
  using Clock = std::chrono::steady_clock;
  const std::size_t size = digests_.size();
  const Clock::time_point start = Clock::now();
  for (std::size_t at = 0; at < size; at += kBatch) ask(entry, at, std::min(kBatch, size - at));
  entry.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  // It may change when a window grows.
  if (const Window* window = entry.filter.window())
    entry.slack = std::max(entry.slack, window->slack());
  // A chunk is a multiple of a stride, or a stride of a chunk.
  const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(stride_, kChunk));
  for (std::size_t at = 0; at < size; at += step) {
    const CompareCounts part = count(entry, at, std::min(at + step, size));
    if ((judged_ + at) % stride_ == 0) entry.points.emplace_back();
    entry.points.back() += part;
    entry.counts += part;
  }
}

CompareCounts Comparison::count(Entry& entry, std::size_t begin, std::size_t end) {
  CompareCounts counts{.records = end - begin};
  for (std::size_t i = begin; i < end; ++i) {
    const bool held = verdicts_[i] == Verdict::duplicate;
    const bool distinct = distinct_[i] != 0;
    counts.distinct += distinct;
    const bool excused = by_slack(entry, i, held);
    if (held != distinct) continue;
    if (excused)
      ++counts.by_slack;
    else
      ++(held ? counts.false_positives : counts.false_negatives);
  }
  return counts;
}

// Whether a window filter's own deliveries make its verdict right.
bool Comparison::by_slack(Entry& entry, std::size_t i, bool held) {
  if (!entry.own) return false;
  StreamTruth& own = *entry.own;
  const std::int64_t now = by_time() ? nows_[i] : own.deliveries();
  if (starts_afresh(i)) own.forget();
  const std::int64_t last = own.last_of(digests_[i]);
  if (held) return own.rule().perhaps(last, now, entry.slack);
  own.deliver(digests_[i], by_time() ? times_[i] : now);
  return !own.rule().inside(last, now);
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

CompareTruth Comparison::truth() const {
  CompareTruth truth = found_;
  if (!window_)
    truth.most_keys = truth.counts.distinct;
  else if (!by_time())
    truth.most_keys = std::min(truth.counts.distinct, window_->size);
  truth.bytes = truth_.bytes() + in_window_.size() * sizeof(std::int64_t);
  for (const Entry& entry : entries_)
    if (entry.own) truth.bytes += entry.own->bytes();
  return truth;
}

std::vector<CompareResult> Comparison::finish() {
  judge();
  std::vector<CompareResult> results;
  for (const Entry& entry : entries_) {
    const Window* window = entry.filter.window();
    const AnyFilter& filter =
        window == nullptr || window->listed() ? entry.filter : window->growth().newest();
    results.push_back(
        {.name = entry.name,
         .settings = (window == nullptr ? filter.settings() : window->filter_settings()).text(),
         .stats = entry.filter.stats(),
         .counts = entry.counts,
         .forgets = !filter.promises().no_false_negatives,
         .seconds = entry.seconds,
         .points = entry.points});
  }
  return results;
}

}  // namespace sluice
