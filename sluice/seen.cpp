#include "sluice/seen.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <utility>

#include "connectors/files/state_file.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/fields.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/snapshot/pull.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

constexpr std::size_t kTogether = 256;  // keys hashed and judged at a time

MemoryResource& or_default(MemoryResource* resource) {
  return resource == nullptr ? default_memory() : *resource;
}

// Stands in the place of the plan that a loaded state does not have, so that a Seen without labels
// takes no room for them. A plan always has a choice, this never.
struct LoadedLabels : Planning {
  explicit LoadedLabels(Labels loaded) : Planning{}, labels(std::move(loaded)) {}
  Labels labels;
};

// The planner's names for what Options calls otherwise.
std::optional<std::string> option_of(std::string_view field) {
  if (field == "expect") return "`keys`";
  return std::nullopt;
}

// What `ask` returns; its errors name the options.
template <class Ask>
auto in_options(Ask ask) {
  try {
    return ask();
  } catch (const BadParameters& error) {
    throw BadParameters(in_words_of(error.what(), option_of));
  }
}

void check(const Seen::Options& options) {
  constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 44;
  if (options.keys && *options.keys > kMostKeys) throw BadParameters("`keys` must be 1 to 2^44");
  const bool by_time = options.window && options.window->spec().by_time();
  if (options.max_ahead && !by_time)
    throw BadParameters("`max_ahead` needs a `window` of time: give one");
  if (options.refresh && !options.window)
    throw BadParameters("`refresh` needs a `window`: give one");
  if (by_time && options.memory && !options.keys && !options.rate && options.filter.empty())
    throw BadParameters(
        "`memory` for a `window` of time needs `keys`, the distinct keys to expect in one window, "
        "or `rate`, those per second: give one of them");
}

std::optional<std::uint64_t> max_ahead_of(const Seen::Options& options) {
  if (!options.max_ahead) return std::nullopt;
  if (options.max_ahead->count() <= 0) throw BadParameters("`max_ahead` must be more than nothing");
  return static_cast<std::uint64_t>(options.max_ahead->count());
}

Hasher hasher_of(const Seen::Options& options) {
  return Hasher(options.untrusted_keys ? HashKind::highway : HashKind::xxh3,
                options.seed ? Secret::from_seed(*options.seed) : Secret::random());
}

PlanRequest request_of(const Seen::Options& options) {
  PlanRequest request;
  if (options.window) request.window = options.window->spec();
  request.anchor = options.refresh ? Anchor::refreshed : Anchor::delivered;
  request.rate = options.rate;
  request.expect = options.keys;
  request.fpr = options.fpr;
  request.memory = options.memory;
  request.costs = or_default(options.resource).costs();
  return request;
}

// A filter that is named has its table from the start.
AnyFilter named(const Seen::Options& options) {
  MemoryResource& memory = or_default(options.resource);
  if (options.memory)
    throw BadParameters(
        "`memory` goes to the planner, and `filter` does without: give bytes= to the filter");
  const Plan plan = in_options([&] { return plan_named(options.filter, request_of(options)); });
  if (!options.window) {
    AnyFilter filter = make_filter(plan.filter_text(), plan.wish(), memory);
    if (filter.ages())
      throw BadParameters("filter '" + std::string(name_of(filter.kind())) +
                          "' is for windows, and cannot hold keys for good: give a `window`");
    return filter;
  }
  Window::Params params = plan.window_params();
  params.max_ahead = max_ahead_of(options);
  return AnyFilter(Window::make(params, memory));
}

std::shared_ptr<const Planning> plan_for(const Seen::Options& options) {
  check(options);
  if (!options.filter.empty()) return nullptr;
  return in_options([&] {
    auto planning = planned(request_of(options), PlanScope::choice);
    if (!planning->chosen) throw BadParameters(planning->reason);
    return planning;
  });
}

AnyFilter make(const Seen::Options& options, const Planning* planning) {
  if (planning == nullptr) return named(options);
  MemoryResource& memory = or_default(options.resource);
  const Plan& choice = planning->choice();
  if (!choice.window) return make_filter(choice.filter_text(), choice.wish(), memory);
  Window::Params params = choice.window_params();
  params.listed = true;
  params.max_ahead = max_ahead_of(options);
  params.memory = options.memory;
  return AnyFilter(Window::make(params, memory));
}

AnyFilter made(const Seen::Options& options, const Planning* planning) {
  try {
    AnyFilter filter = make(options, planning);
    if (options.memory && filter.bytes() > *options.memory)
      throw NoMemory(
          fmt::format("in blocks of this resource the filter takes {} bytes of `memory` {}",
                      filter.bytes(), *options.memory));
    return filter;
  } catch (const NoMemory& error) {
    throw NoMemory(std::string(error.what()) +
                   "; a larger budget of the resource, fewer `keys` or a larger `fpr` would help");
  }
}

[[noreturn]] void refuse_key(const AnyFilter& filter) {
  const Window* const window = filter.window();
  throw NoMemory(window != nullptr ? window->why_full() : Window::kNoMemoryForKey);
}

// Turns the reason why a state cannot be used into an error that names the file.
[[noreturn]] void refuse_file(const std::filesystem::path& file, const char* verb) {
  std::error_code ignored;
  const auto found = std::filesystem::status(file, ignored);
  const int number = !std::filesystem::exists(found)        ? ENOENT
                     : std::filesystem::is_directory(found) ? EISDIR
                                                            : EINVAL;
  throw IoError(std::string("cannot ") + verb + " '" + file.string() + "'", number);
}

Nanoseconds nanoseconds(Seen::Time time) noexcept {
  return time.time_since_epoch().count();
}

Nanoseconds now() noexcept {
  using namespace std::chrono;
  return duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

// Before it becomes a number of nanoseconds, which could wrap.
void WindowLength::check_seconds(long double seconds) {
  if (std::isnan(seconds)) throw BadParameters("`window` is not a number");
  if (seconds > static_cast<long double>(kLongestWindow) * 1e-9L)
    throw BadParameters("`window` is too long: at most 73 years");
}

WindowLength::WindowLength(const char* text) {
  if (text == nullptr) throw BadParameters("`window` is a null pointer: give a text such as 10m");
  *this = WindowLength(std::string_view(text));
}

WindowLength::WindowLength(std::string_view text) : spec_(parse_window("`window`", text)) {}

Seen::Seen(const Hasher& hasher, AnyFilter filter, std::shared_ptr<const Planning> plan)
    : hasher_(hasher), plan_(std::move(plan)), filter_(std::move(filter)) {}

Seen::Seen(const Options& options)
    : hasher_(hasher_of(options)), plan_(plan_for(options)), filter_(made(options, plan_.get())) {}

bool Seen::first(std::string_view key) {
  if (Window* const window = filter_.window(); window != nullptr) {
    if (window->params().spec.by_time()) window->arrive(now());
    return window->observe(hasher_.digest(key)) == Verdict::distinct;
  }
  return filter_.observe(hasher_.digest(key)) == Verdict::distinct;
}

// Not by observe(), whose room for many keys takes longer to clear than one key to judge.
bool Seen::first(std::string_view key, Time when) {
  Window* const window = filter_.window();
  if (window == nullptr || !window->params().spec.by_time()) return first(key);
  const Digest digest = hasher_.digest(key);
  const Nanoseconds time = nanoseconds(when);
  Verdict verdict{};
  bool late = false;
  if (window->judge(std::span(&digest, 1), std::span(&time, 1), std::span(&verdict, 1),
                    std::span(&late, 1)) == 0)
    refuse_key(filter_);
  return verdict == Verdict::distinct;
}

std::size_t Seen::observe(std::span<const std::string_view> keys, std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), keys.size());
  if (Window* const window = filter_.window(); window != nullptr && window->params().spec.by_time())
    window->arrive(now());
  std::array<Digest, kTogether> digests;
  std::size_t judged = 0;
  while (judged < keys.size()) {
    const std::size_t count = std::min(keys.size() - judged, kTogether);
    const auto part = std::span(digests).first(count);
    hasher_.digest(keys.subspan(judged, count), part);
    const std::size_t done = filter_.observe(part, verdicts.subspan(judged, count));
    judged += done;
    if (done < count) break;
  }
  return judged;
}

std::size_t Seen::observe(std::span<const std::string_view> keys, std::span<const Time> times,
                          std::span<Verdict> verdicts) {
  check_length("verdicts", verdicts.size(), keys.size());
  check_length("times", times.size(), keys.size());
  Window* const window = filter_.window();
  if (window == nullptr || !window->params().spec.by_time()) return observe(keys, verdicts);
  std::array<Digest, kTogether> digests;
  std::array<Nanoseconds, kTogether> whens;
  std::array<bool, kTogether> late;
  std::size_t judged = 0;
  while (judged < keys.size()) {
    const std::size_t count = std::min(keys.size() - judged, kTogether);
    const auto part = std::span(digests).first(count);
    hasher_.digest(keys.subspan(judged, count), part);
    std::ranges::transform(times.subspan(judged, count), whens.begin(), nanoseconds);
    const std::size_t done =
        window->judge(part, std::span(whens).first(count), verdicts.subspan(judged, count),
                      std::span(late).first(count));
    judged += done;
    if (done < count) break;
  }
  return judged;
}

bool Seen::contains(std::string_view key) const {
  if (const Window* const window = filter_.window())
    return window->may_contain(hasher_.digest(key), now());
  return contains(key, Time());
}

bool Seen::contains(std::string_view key, Time when) const {
  const Digest digest = hasher_.digest(key);
  if (const Window* const window = filter_.window())
    return window->peek(digest, nanoseconds(when)) == Verdict::duplicate;
  Verdict verdict{};
  filter_.may_contain(std::span(&digest, 1), std::span(&verdict, 1));
  return verdict == Verdict::duplicate;
}

bool Seen::forget(std::string_view key) {
  if (!filter_.can_forget()) {
    const Window* const window = filter_.window();
    throw BadParameters(fmt::format(
        "filter '{}' cannot take keys back: the planner chooses one that can for a `window`, "
        "and if neither `keys` nor `memory` is given",
        window != nullptr ? std::string_view(window->params().filter) : name_of(filter_.kind())));
  }
  return filter_.forget(hasher_.digest(key));
}

Seen Seen::of(Snapshot&& snapshot) {
  std::shared_ptr<const LoadedLabels> labels;
  if (!snapshot.labels.empty())
    labels = std::make_shared<const LoadedLabels>(std::move(snapshot.labels));
  return Seen(snapshot.hasher, std::move(snapshot.filter), std::move(labels));
}

const Labels& Seen::labels() const noexcept {
  static const Labels none;
  if (plan_ == nullptr || plan_->chosen) return none;
  return static_cast<const LoadedLabels&>(*plan_).labels;
}

std::vector<std::byte> Seen::save(const Labels& labels) const {
  SnapshotPull pull(hasher_, filter_, labels);
  std::vector<std::byte> bytes(pull.size());
  pull.next(bytes);
  return bytes;
}

Seen Seen::load(std::span<const std::byte> bytes, MemoryResource* resource) {
  BytesDecoder from(bytes);
  return of(read_snapshot(from, or_default(resource)));
}

void Seen::save(const std::filesystem::path& file, const Labels& labels) const {
  try {
    StateFile(file).save(hasher_, filter_, labels);
  } catch (const StateBusy& error) {
    throw IoError("cannot save to '" + file.string() + "', because another process holds '" +
                      error.lock().string() + "'",
                  EBUSY);
  } catch (const StateRefused&) {
    refuse_file(file, "save to");
  }
}

Seen Seen::load(const std::filesystem::path& file, MemoryResource* resource) {
  try {
    return of(load_snapshot_file(file, or_default(resource)));
  } catch (const StateRefused&) {
    refuse_file(file, "load");
  }
}

std::optional<Seen> Seen::load_if_there(const std::filesystem::path& file,
                                        MemoryResource* resource) {
  try {
    return load(file, resource);
  } catch (const IoError& error) {
    if (error.error_number() != ENOENT) throw;
    return std::nullopt;
  }
}

void Seen::merge(const Seen& other) {
  // Its error comes first: advice about the hash would not help.
  if (!filter_.can_merge() || filter_.kind() != other.filter_.kind())
    return filter_.merge(other.filter_);
  if (hasher_.kind() != other.hasher_.kind())
    throw BadParameters(
        "these hash keys by different functions: set `untrusted_keys` for both or for neither");
  if (hasher_.secret() != other.hasher_.secret())
    throw BadParameters(
        "these hash keys under different secrets: give both one `seed`, or make one a clone of the "
        "other");
  filter_.merge(other.filter_);
}

Seen Seen::clone() const {
  return Seen(hasher_, sluice::clone(filter_, filter_.memory()), plan_);
}

}  // namespace sluice
