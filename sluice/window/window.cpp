#include "sluice/window/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <deque>
#include <functional>
#include <limits>
#include <unordered_map>

#include "sluice/base/checked.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/filters/share_range.hpp"

namespace sluice {
namespace {

// Of a thread. One takes about 1 KiB, and five times the text of its filter.
constexpr std::size_t kMostBlueprints = 1024;
constexpr std::size_t kMostTexts = std::size_t{256} << 10;

// What helps where the table of a window does not fit its resource.
constexpr const char* kSmallerByTime =
    "give the resource a larger budget, or ask for fewer `keys` or a larger `fpr`";
constexpr const char* kSmallerByCount =
    "give the resource a larger budget, or ask for a smaller `window` or a larger `fpr`";

// What is left for the stages beside the objects that hold them.
std::uint64_t memory_of_growth(std::uint64_t memory, const BlockCosts& costs) {
  const std::uint64_t beside =
      costs.block(sizeof(Growth)) + costs.block(AnyFilter::holder_bytes<Window>());
  return memory > beside ? memory - beside : 1;
}

bool is_size(std::string_view name) noexcept {
  return name == "keys" || name == "bytes" || name == "timers";
}

Settings settings_of(std::string_view filter) {
  const std::size_t comma = filter.find(',');
  return Settings::parse(comma == std::string_view::npos ? "" : filter.substr(comma + 1));
}

bool names_a_size(const std::string& filter) {
  const Settings settings = settings_of(filter);
  return std::ranges::any_of(settings.pairs(),
                             [](const auto& pair) { return is_size(pair.first); });
}

// Of a window by time. A window that grows from few keys to many has several stages on the way.
// `cohort` can afford them, since its widest slots need only a part of this error for each stage;
// other filters lose too much.
std::uint64_t first_keys(const Window::Params& params) {
  constexpr double kLeastShared = 1e-10;
  if (params.keys) return *params.keys;
  const Settings settings = settings_of(params.filter);
  for (const auto& [name, value] : settings.pairs())
    if (name == "keys") return parse_count("keys of `filter`", value);
  const bool small = params.listed && params.filter == "cohort" && params.fpr >= kLeastShared;
  return small ? Window::kKeysAfterList : Window::kFirstKeys;
}

Growth::Plan plan_of(const Window::Params& params) {
  const bool by_count = params.spec.kind == WindowSpec::Kind::count;
  return {.keys = by_count ? params.spec.size : first_keys(params),
          .fpr = params.fpr,
          .may_grow = !by_count,
          .by = params.growth};
}

[[noreturn]] void refuse_timeless(std::string_view filter) {
  throw BadParameters(fmt::format(
      "filter '{}' does not forget: a window needs cohort or another window filter", filter));
}

// What the first stage is asked for. A landmark window is one generation.
Wish first_wish(const Window::Params& params) {
  const Growth::Plan plan = plan_of(params);
  const bool landmark = params.spec.kind == WindowSpec::Kind::landmark;
  return {.keys = plan.keys,
          .fpr = plan.first_fpr(),
          .generations = landmark ? std::optional(0u) : params.generations};
}

// A stage must cut the window as finely as the others. The first one is made as it was forecast:
// asked for `first` generations, or for none in particular.
Growth::Make maker_of(const Window::Params& params, std::optional<unsigned> first) {
  return [filter = params.filter, successor = Window::successor_text(params),
          plan = plan_of(params), generations = params.generations,
          first](std::uint64_t keys, double fpr, MemoryResource& memory) {
    const bool is_first = keys == plan.keys && fpr == plan.first_fpr();
    AnyFilter made = make_filter(
        is_first ? filter : successor,
        {.keys = keys, .fpr = fpr, .generations = is_first ? first : generations}, memory);
    if (!made.ages()) refuse_timeless(name_of(made.kind()));
    return made;
  };
}

const char* what_is_wrong(const Window::Params& params) {
  const WindowSpec::Kind kind = params.spec.kind;
  if (kind < WindowSpec::Kind::count || kind > WindowSpec::Kind::landmark)
    return "`window` must be a number of keys, a span of time, or the present hour or day";
  if (params.spec.size == 0) return "`window` must be longer than nothing";
  if (kind == WindowSpec::Kind::count && params.growth != Growth::By::density)
    return "`growth` is for windows of time: a window of a number of keys does not grow";
  if (params.spec.by_time() && params.spec.size > kLongestWindow)
    return "`window` is too long: at most 73 years";
  if (!can_be_asked(params.fpr)) return "`fpr` must lie between 1e-300 and 0.999999";
  if (params.max_ahead == std::uint64_t{0}) return "`max_ahead` must be more than nothing";
  if (params.filter.size() > Window::kMostFilterText) return "the text of `filter` is too long";
  return nullptr;
}

// A count window that `generations` does not divide would come out longer than asked: by a key a
// generation, which is much for a small one. Cut it into whole generations of a size that fits.
unsigned whole_generations(const WindowSpec& spec, unsigned generations) {
  if (spec.kind != WindowSpec::Kind::count || generations == 0) return generations;
  const std::uint64_t size = (spec.size + generations - 1) / generations;
  return static_cast<unsigned>((spec.size + size - 1) / size);
}

// Keys of a count window, nanoseconds of the others. Rounded up: a window is never shorter than
// promised.
std::uint64_t size_of_generation(const WindowSpec& spec, unsigned generations) {
  const std::uint64_t parts = std::max(1u, generations);
  return (spec.size + parts - 1) / parts;
}

// What a filter keeps too long, `share` of its own window, as a share of the window that was asked
// for.
double past_the_window(const WindowSpec& spec, unsigned generations, double share) {
  if (spec.kind == WindowSpec::Kind::landmark) return 0;
  const double generations_long =
      static_cast<double>(size_of_generation(spec, generations)) * generations;
  return (1 + share) * generations_long / static_cast<double>(spec.size) - 1;
}

// A landmark window is one generation, the others are several.
void check_cut(const WindowSpec& spec, unsigned generations, std::string_view filter) {
  const bool afresh = generations == 0;
  if (spec.kind == WindowSpec::Kind::landmark && !afresh &&
      filter.find("generations=") != std::string_view::npos)
    throw BadParameters(fmt::format(
        "filter '{}': a window that starts afresh every hour or day has no generations: leave "
        "'generations' out",
        filter));
  if (spec.kind == WindowSpec::Kind::landmark && !afresh)
    throw BadParameters(fmt::format(
        "filter '{}' cannot start afresh every hour or day: cohort, exact, apbf and apbbf can",
        filter));
  if (spec.kind != WindowSpec::Kind::landmark && afresh)
    throw BadParameters("a sliding window needs at least one generation");
}

}  // namespace

std::string Window::successor_text(const Params& params) {
  if (!params.spec.by_time() || !names_a_size(params.filter)) return params.filter;
  const Settings given = settings_of(params.filter);
  Settings kept;
  for (const auto& [name, value] : given.pairs())
    if (!is_size(name)) kept.add(name, value);
  const std::string name = params.filter.substr(0, params.filter.find(','));
  return kept.pairs().empty() ? name : name + "," + kept.text();
}

Settings Window::Params::settings() const {
  Settings settings;
  settings.add("window", describe(spec, anchor == Anchor::refreshed));
  settings.add("anchor", anchor == Anchor::refreshed ? "refreshed" : "delivered");
  settings.add("filter", filter);
  settings.add("fpr", fpr);
  if (keys) settings.add("keys", *keys);
  if (generations) settings.add("generations", std::uint64_t{*generations});
  if (max_ahead && *max_ahead != spec.size) settings.add("max-ahead", in_words(*max_ahead));
  if (growth == Growth::By::cardinality) settings.add("growth", "cardinality");
  if (memory) settings.add("memory", *memory);
  return settings;
}

// Whether the stage that follows a full first table is of about its size: of twice the keys, at half
// the error. A filter whose text names the size of the first may say otherwise.
bool Window::next_is_like_first(const Params& params, const Forecast& first) {
  constexpr std::uint64_t kMostTimes = 4, kAlwaysAllowed = std::uint64_t{16} << 20;
  const Growth::Plan plan = plan_of(params);
  if (!plan.may_grow || params.filter.find(',') == std::string::npos) return true;
  const std::uint64_t keys = std::max(plan.keys, Growth::most_keys_after(first.keys));
  const std::uint64_t bytes = bytes_of_stage(
      successor_text(params), keys, Growth::share_after(plan, first.fpr), *params.generations);
  return bytes <= kAlwaysAllowed || bytes / kMostTimes <= first.bytes;
}

Counted<Window::Blueprint> Window::blueprint_of(const Params& params, const BlockCosts& costs) {
  const Forecast table = forecast(params);
  Params cut = params;
  // The stages to come are cut as the first one is.
  cut.generations = table.generations;
  cut.listed = params.listed && table.bytes <= kMostListedPlan && next_is_like_first(cut, table);
  Wish first = first_wish(params);
  if (forecast_filter(params.filter, first).generations != table.generations)
    first.generations = table.generations;  // it was cut again, into whole generations
  Growth::Plan plan = plan_of(cut);
  if (cut.memory) plan.memory = memory_of_growth(*cut.memory, costs);
  return Counted<Blueprint>::make(
      Blueprint{.params = cut,
                .make = std::make_shared<const Growth::Make>(maker_of(cut, first.generations)),
                .generations_asked = params.generations.has_value(),
                .plan = plan,
                .limits = ClockLimits(cut.spec.size, cut.max_ahead),
                .generation_size = size_of_generation(cut.spec, *cut.generations),
                .table = table,
                .bytes = bytes_in(table, costs),
                .most_listed = most_listed(cut, table.bytes, costs)});
}

std::size_t Window::hash_of(const Params& params) noexcept {
  std::size_t hash = std::hash<std::string_view>{}(params.filter);
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15 >> 1; };
  add(params.spec.size);
  add(std::bit_cast<std::uint64_t>(params.fpr));
  add(params.keys.value_or(0));
  add(params.generations.value_or(0));
  add(params.max_ahead.value_or(0));
  add(params.memory.value_or(0));
  add(static_cast<std::uint64_t>(params.spec.kind) << 16 |
      static_cast<std::uint64_t>(params.anchor) << 8 |
      static_cast<std::uint64_t>(params.growth) << 1 | static_cast<std::uint64_t>(params.listed));
  return hash;
}

// A host with one window per user makes them with a few hundred different parameters at most: the
// blueprints of the last ones that were new are kept.
Counted<Window::Blueprint> Window::find_blueprint(const Params& params,
                                                  const MemoryResource& memory) {
  struct View {
    const Params& params;
    BlockCosts costs;
  };
  struct Asked {
    Params params;
    BlockCosts costs;
    operator View() const noexcept { return {params, costs}; }
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const View& asked) const noexcept { return hash_of(asked.params); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const View& one, const View& other) const noexcept {
      return one.params == other.params && one.costs == other.costs;
    }
  };
  struct Known {
    std::unordered_map<Asked, Counted<Blueprint>, Hash, Equal> blueprints;
    std::deque<const Asked*> order;  // the oldest first
    std::size_t texts = 0;
  };
  thread_local Known known;
  const BlockCosts costs = memory.costs();
  if (const auto found = known.blueprints.find(View{params, costs});
      found != known.blueprints.end())
    return found->second;
  auto made = blueprint_of(params, costs);
  while (known.order.size() >= kMostBlueprints || known.texts > kMostTexts) {
    known.texts -= known.order.front()->params.filter.size();
    known.blueprints.erase(known.blueprints.find(View(*known.order.front())));
    known.order.pop_front();
  }
  known.order.push_back(&known.blueprints.emplace(Asked{params, costs}, made).first->first);
  known.texts += params.filter.size();
  return made;
}

void Window::Delete::operator()(Growth* growth) const noexcept {
  MemoryResource& memory = growth->memory();
  growth->~Growth();
  memory.deallocate(growth, sizeof(Growth), alignof(Growth));
}

Window Window::make(const Params& params, MemoryResource& memory) {
  memory.check_largest_block();
  Window window(find_blueprint(params, memory), memory);
  window.check_budget(memory.budget(), params.spec.by_time() ? kSmallerByTime : kSmallerByCount);
  if (!window.params().listed || window.blueprint_->most_listed == 0) {
    window.start_table();
    if (params.filter.find(',') != std::string::npos) window.check_readable();
  }
  return window;
}

// What a person names may be made, and yet be too far from what its successors would be to be believed when
// it is read back.
void Window::check_readable() const {
  CountingEncoder payload;
  growth_->encode_payload(payload);
  try {
    check_stages_to_come(payload.count());
  } catch (const CorruptSnapshot&) {
    throw BadParameters(
        fmt::format("filter '{}' is far smaller than what would follow it when it is full: leave "
                    "out its size and its "
                    "probes, or say how many keys it is for",
                    params().filter));
  }
}

void Window::check_budget(std::uint64_t budget, const char* help) const {
  if (blueprint_->bytes > budget)
    throw NoMemory(fmt::format("the table of the window may take {} bytes, and there are {}: {}",
                               blueprint_->bytes, budget, help));
}

Owned<Growth> Window::make_growth() const {
  return make_owned<Growth>(memory(), blueprint_->make, blueprint_->plan, memory());
}

// Empty.
void Window::start_table() {
  Owned<Growth> growth = make_growth();
  growth->start();
  growth_.reset(growth.release());
  assert(growth_->generations() == generations());
  left_ = generation_size();
}

std::uint64_t Window::bytes() const noexcept {
  if (listed()) return list_.bytes();
  return memory().usable(growth_.get(), sizeof(Growth), alignof(Growth)) + growth_->bytes();
}

FilterStats Window::stats() const {
  FilterStats stats = listed() ? list_stats() : growth_->stats();
  stats.bytes = bytes();
  stats.disbelieved = clock_.disbelieved();
  stats.over_target |= stats.predicted_fpr > stats.target_fpr;
  return stats;
}

std::string_view Window::filter_name() const noexcept {
  const std::string_view text = params().filter;
  return text.substr(0, text.find(','));
}

Settings Window::filter_settings() const {
  return listed() ? blueprint_->table.settings : growth_->newest().settings();
}

// A list could, but what a program can do may not end when the list becomes a table.
bool Window::can_forget() const noexcept {
  if (!listed()) return growth_->can_forget();
  return filter_name() == "cohort" || filter_name() == "exact-window";
}

Forecast Window::forecast(const Params& params, bool brief) {
  if (const char* wrong = what_is_wrong(params)) throw BadParameters(wrong);
  const Growth::Plan plan = plan_of(params);
  Wish wish = first_wish(params);
  wish.brief = brief;
  const std::string_view name = std::string_view(params.filter).substr(0, params.filter.find(','));
  // To forecast it may take milliseconds.
  if (!may_age(params.filter)) refuse_timeless(name);
  Forecast made = forecast_filter(params.filter, wish);
  if (!made.generations) refuse_timeless(name);
  const unsigned whole = whole_generations(params.spec, *made.generations);
  if (whole != *made.generations) {
    wish.generations = whole;
    made = forecast_filter(params.filter, wish);
  }
  check_cut(params.spec, *made.generations, params.filter);
  made.slack = past_the_window(params.spec, *made.generations, made.slack);
  made.npws = past_the_window(params.spec, *made.generations, made.npws);
  made.bytes =
      checked_add(made.bytes, Growth::own_bytes() + AnyFilter::holder_bytes<Window>(), "a window");
  made.fpr *= plan.fpr / plan.first_fpr();
  made.fpr_spread *= plan.fpr / plan.first_fpr();
  return made;
}

void Window::clear() noexcept {
  list_.clear();
  if (params().listed)
    growth_.reset();
  else
    growth_->clear();
  clock_ = EventClock();
  forgotten_ = forget_misses_ = 0;
  left_ = listed() ? 0 : generation_size();
  tick_ = 0;
}

bool Window::forget(const Digest& digest) noexcept {
  // Else it would come back as soon as its time is believed.
  clock_.forget(digest);
  if (!listed()) return growth_->forget(digest);
  return forget_listed(digest);
}

// A filter keeps keys for its own share longer than its generations; those, rounded up to whole
// keys, may be longer than the window already.
double Window::slack() const {
  if (listed()) return blueprint_->table.slack;
  return past_the_window(params().spec, generations(), growth_->slack());
}

double Window::npws() const {
  if (listed()) return blueprint_->table.npws;
  return past_the_window(params().spec, generations(), growth_->npws());
}

static_assert(ForgettingFilter<Window>);

}  // namespace sluice
