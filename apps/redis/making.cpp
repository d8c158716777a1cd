#include "apps/redis/making.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "apps/redis/host.hpp"
#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/fields.hpp"
#include "sluice/base/near_miss.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/window/window.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t kMostFilterText = Window::kMostFilterText;

std::optional<std::string> word_of(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kWords{
      {{"window", "WINDOW"},
       {"fpr", "FPR"},
       {"expect", "EXPECT"},
       {"keys", "EXPECT"},
       {"rate", "RATE"},
       {"memory", "MEMORY"},
       {"slack", "SLACK"},
       {"filter", "FILTER"},
       {"refresh", "REFRESH"},
       {"seed", "SEED"},
       {"audit", "AUDIT"},
       {"claims", "sluice.claims-limit"}}};
  for (const auto& [name, word] : kWords)
    if (name == field) return std::string(word);
  // A parameter of a filter, which is written as it is.
  return std::string(field);
}

// The value of an option. The parsers name it in their errors, so it must be short and printable.
std::string_view value_of(Words& words, const char* option) {
  constexpr std::size_t kMost = 64;
  const std::string_view value = words.next(fmt::format("the value of {}", option));
  if (value.size() > kMost ||
      !std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; }))
    throw BadParameters(fmt::format("{} cannot be {}", option, quoted(value)));
  return value;
}

template <class Value>
void set_once(std::optional<Value>& field, const char* option, Value value) {
  if (field) throw BadParameters(fmt::format("{} is given twice", option));
  field = std::move(value);
}

bool is_option(std::string_view word) {
  constexpr std::array<std::string_view, 11> kOptions{"WINDOW", "FPR",   "EXPECT", "RATE",
                                                      "MEMORY", "SLACK", "FILTER", "REFRESH",
                                                      "SEED",   "AUDIT", "ITEMS"};
  return std::ranges::any_of(kOptions,
                             [&](std::string_view each) { return same_word(each, word); });
}

// As parse_rate, whose error shows units of time only by name.
double read_rate(std::string_view word) {
  const std::size_t slash = word.find('/');
  const std::string_view unit = slash == std::string_view::npos ? "" : word.substr(slash + 1);
  if (unit != "s" && unit != "m" && unit != "h" && unit != "d")
    throw BadParameters(fmt::format(
        "RATE {} is no rate: give items per second, minute, hour or day, such as 50k/s, 5k/m, 1M/h "
        "or 10M/d",
        quoted(word)));
  return parse_rate("RATE", word);
}

// Of all there is to plan, only the error of equal timers takes long, and the server has one thread. The default
// generations and probes are allowed.
void check_equal_timers(std::string_view name, std::string_view text) {
  constexpr std::uint64_t kMostSteps = 24 * 20 * 20;
  if (name != "timer") return;
  const Settings settings =
      Settings::parse(text.substr(std::min(text.find(','), text.size() - 1) + 1));
  const auto value = [&](const char* parameter, std::uint64_t otherwise) {
    for (const auto& [each, given] : settings.pairs())
      if (each == parameter) return parse_count(each, given);
    return otherwise;
  };
  if (value("equal", 0) < 2) return;
  for (const auto& [each, given] : settings.pairs())
    if (each == "layout" && given == "horizontal")
      throw BadParameters(
          "FILTER timer with equal needs layout vertical here, because the server would wait while "
          "the other is planned");
  const std::uint64_t probes = std::min<std::uint64_t>(value("probes", 20), 64);
  if (value("generations", 24) > kMostSteps / (probes * probes))
    throw BadParameters(
        fmt::format("FILTER timer with equal: generations * probes * probes may be {} at most, "
                    "because the server would wait while "
                    "more is planned",
                    kMostSteps));
}

const FilterInfo& filter_meant(std::string_view name) {
  std::vector<std::string> names;
  for (const FilterInfo& each : catalogue()) {
    if (each.name == name) return each;
    names.emplace_back(each.name);
  }
  if (const auto meant = near_miss(name, names))
    throw BadParameters(
        fmt::format("there is no FILTER {}: did you mean {}?", quoted(name), *meant));
  return filter_named(name);
}

// FILTER name [parameter value]...: as many pairs as the filter has parameters of these names. FPR is always
// the command's own.
std::string read_filter(Words& words) {
  std::string text(words.next("the name of FILTER"));
  const std::size_t name_size = std::min(text.find(','), text.size());
  text.replace(0, name_size, in_small(std::string_view(text).substr(0, name_size)));
  if (text.size() > kMostFilterText ||
      !std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
    throw BadParameters(fmt::format("there is no FILTER {}", quoted(text)));
  const FilterInfo& info = filter_meant(std::string_view(text).substr(0, name_size));
  if (info.name == "sharded")
    throw BadParameters("FILTER sharded works on several threads, which a server does not give it");
  while (!words.empty()) {
    const std::string_view name = words.peek();
    const auto found = std::ranges::find_if(
        info.parameters, [&](const ParameterInfo& each) { return same_word(each.name, name); });
    if (found == info.parameters.end() || is_option(name)) break;
    words.take(name);
    text += fmt::format(",{}={}", found->name, value_of(words, std::string(found->name).c_str()));
    if (text.size() > kMostFilterText) throw BadParameters("FILTER is too long");
  }
  check_equal_timers(info.name, text);
  return text;
}

// AUDIT 1/1024.
std::uint64_t read_audit(std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos || word.substr(0, slash) != "1")
    throw BadParameters(
        fmt::format("AUDIT must be a share of the items, such as 1/1024, not {}", quoted(word)));
  return static_cast<std::uint64_t>(
      whole_number("n of AUDIT 1/n", word.substr(slash + 1), 1, std::int64_t{Audit::kMostSample}));
}

// What takes long to decide, for when it is asked for again; also if it cannot be had. The planner keeps its own
// plans, but none of filters that were named, nor what is made for a window that was told no number of items.
class KeptDecisions {
 public:
  template <class Decide>
  const Decided& find(const std::string& filter, const PlanRequest& request, const Decide& decide) {
    for (Kept& each : kept_)
      if (each.used != 0 && each.filter == filter && each.request == request) {
        each.used = ++now_;
        return answer(each);
      }
    Kept made{.filter = filter, .request = request, .used = ++now_};
    try {
      made.decided = decide();
    } catch (const BadParameters& problem) {
      made.why_not = problem.what();
    }
    return answer(*std::ranges::min_element(kept_, {}, &Kept::used) = std::move(made));
  }

 private:
  struct Kept {
    std::string filter;
    PlanRequest request;
    Decided decided = {};
    std::string why_not = {};  // empty: it was decided
    std::uint64_t used = 0;    // 0: nothing is kept here
  };
  static const Decided& answer(const Kept& kept) {
    if (!kept.why_not.empty()) throw BadParameters(kept.why_not);
    return kept.decided;
  }
  std::uint64_t now_ = 0;
  std::array<Kept, 32> kept_;
};

// Commands run on one thread.
KeptDecisions& kept_decisions() {
  static KeptDecisions kept;
  return kept;
}

// What the plan shows is what will be made.
void show(Plan& plan, const Forecast& forecast, const BlockCosts& costs) {
  plan.settings = forecast.settings.text();
  plan.holds = forecast.keys;
  plan.bytes = bytes_in(forecast, costs);
  plan.bits_per_key =
      plan.holds == 0 ? 0 : 8 * static_cast<double>(plan.bytes) / static_cast<double>(plan.holds);
  plan.fpr = forecast.fpr;
  plan.fnr = forecast.fnr;
  plan.slack = forecast.slack;
  plan.lines = forecast.lines;
}

void check_wanted(const Wanted& wanted) {
  const PlanRequest& request = wanted.request;
  const bool by_time = request.window && request.window->by_time();
  if (request.slack && !request.window)
    throw BadParameters(
        "SLACK says how long past a WINDOW an item may be remembered: give a WINDOW, too");
  if (request.anchor == Anchor::refreshed && !request.window)
    throw BadParameters("REFRESH needs a WINDOW: give one");
  if (!wanted.filter.empty() && request.memory)
    throw BadParameters(
        "MEMORY goes to the planner, and FILTER does without: give the filter its parameter bytes");
  if (by_time && request.memory && !request.expect && !request.rate)
    throw BadParameters(
        "MEMORY for a WINDOW of time needs EXPECT, the distinct items in one window, or RATE, "
        "those "
        "per second: give one of them");
}

// What a filter takes when it is made, if nobody has said for how many keys: those that grow start small.
Forecast first_of(const std::string& filter, const Forecast& planned, const Plan& plan) {
  const std::string_view name = std::string_view(filter).substr(0, filter.find(','));
  Wish wish = plan.wish();
  wish.keys = 1;
  if (name == "exact" || name == "growing") return forecast_filter(filter, wish);
  if (name != "dynamic" || filter.find(",bytes=") != std::string::npos) return planned;
  // A series of filters of this many keys each, of which the first one is made.
  for (const auto& [each, value] : planned.settings.pairs())
    if (each == "keys" && filter.find(",keys=") == std::string::npos)
      return forecast_filter(fmt::format("{},keys={}", filter, value), wish);
  return forecast_filter(filter, wish);
}

}  // namespace

std::string in_command_words(std::string_view message) {
  return in_words_of(message, word_of);
}

bool read_option(Words& words, Wanted& wanted) {
  PlanRequest& request = wanted.request;
  if (words.take("WINDOW")) {
    const std::string_view value = value_of(words, "WINDOW");
    if (wanted.window_given) throw BadParameters("WINDOW is given twice");
    wanted.window_given = true;
    // Not all of it in small letters: 1M is a million items, and 1m a minute.
    const bool whole = same_word(value, "hour") || same_word(value, "day");
    if (!same_word(value, "FOREVER"))
      request.window = parse_window("WINDOW", whole ? in_small(value) : std::string(value));
  } else if (words.take("FPR")) {
    set_once(request.fpr, "FPR", parse_probability("FPR", value_of(words, "FPR")));
  } else if (words.take("EXPECT")) {
    set_once(request.expect, "EXPECT", parse_count("EXPECT", value_of(words, "EXPECT")));
  } else if (words.take("RATE")) {
    set_once(request.rate, "RATE", read_rate(value_of(words, "RATE")));
  } else if (words.take("MEMORY")) {
    set_once(request.memory, "MEMORY", parse_size("MEMORY", value_of(words, "MEMORY")));
  } else if (words.take("SLACK")) {
    set_once(request.slack, "SLACK", parse_probability("SLACK", value_of(words, "SLACK")));
  } else if (words.take("FILTER")) {
    if (!wanted.filter.empty()) throw BadParameters("FILTER is given twice");
    wanted.filter = read_filter(words);
  } else if (words.take("REFRESH")) {
    request.anchor = Anchor::refreshed;
  } else if (words.take("SEED")) {
    set_once(wanted.seed, "SEED",
             static_cast<std::uint64_t>(whole_number("SEED", value_of(words, "SEED"), 0,
                                                     std::numeric_limits<std::int64_t>::max())));
  } else if (words.take("AUDIT")) {
    if (wanted.audit != 0) throw BadParameters("AUDIT is given twice");
    wanted.audit = read_audit(value_of(words, "AUDIT"));
  } else {
    return false;
  }
  return true;
}

namespace {

[[noreturn]] void refuse_forever(std::string_view filter) {
  throw BadParameters(fmt::format(
      "filter '{}' is for windows, and cannot hold keys for good: give a WINDOW", filter));
}

Decided decide_named(const std::string& filter, const PlanRequest& request) {
  const BlockCosts& costs = request.costs;
  // To plan it may take seconds.
  if (!request.window && may_age(filter)) refuse_forever(filter.substr(0, filter.find(',')));
  Decided decided{.plan = plan_named(filter, request), .reason = "the filter that was asked for"};
  Plan& plan = decided.plan;
  const Forecast forecast = plan.window ? Window::forecast(plan.window_params())
                                        : forecast_filter(plan.filter_text(), plan.wish());
  show(plan, forecast, costs);
  decided.bytes = plan.bytes;
  if (!plan.window && !plan.keys)
    decided.bytes =
        std::min(decided.bytes, bytes_in(first_of(plan.filter_text(), forecast, plan), costs));
  return decided;
}

}  // namespace

Decided decide(const Wanted& wanted, const Config& config, const BlockCosts& costs) {
  check_wanted(wanted);
  PlanRequest request = wanted.request;
  request.costs = costs;
  if (!request.fpr && !request.memory) request.fpr = config.default_fpr;
  if (!wanted.filter.empty())
    return kept_decisions().find(wanted.filter, request,
                                 [&] { return decide_named(wanted.filter, request); });
  const std::shared_ptr<const Planning> planning = planned(request, PlanScope::choice);
  if (!planning->chosen) throw BadParameters(planning->reason);
  Decided decided{.plan = planning->choice(), .reason = planning->reason};
  // What starts as a short list takes its table later, if at all.
  const bool told =
      request.expect || request.rate || (request.window && !request.window->by_time());
  decided.bytes = told || request.memory ? decided.plan.bytes : 0;
  if (told || !request.window) return decided;
  return kept_decisions().find({}, request, [&] {
    Window::Params params = decided.plan.window_params();
    params.listed = true;
    show(decided.plan, Window::forecast(params), costs);
    return decided;
  });
}

Making making_of(const Wanted& wanted, const Decided& decided, std::int64_t now_ms) {
  const Plan& plan = decided.plan;
  Making making{.secret = wanted.seed ? Secret::from_seed(*wanted.seed) : Secret::random()};
  making.made_ms = now_ms;
  making.audit = wanted.audit;
  making.filter = plan.window ? plan.filter : plan.filter_text();
  making.keys = plan.keys;
  making.fpr = plan.target_fpr;
  making.generations = plan.generations;
  making.window = plan.window;
  making.anchor = plan.anchor;
  // A list and its table may not fit into MEMORY together.
  making.listed = plan.window && wanted.filter.empty() && !wanted.request.memory;
  making.memory = wanted.request.memory;
  return making;
}

AnyFilter Making::make(MemoryResource& from) const {
  if (!window) {
    AnyFilter made =
        make_filter(filter, {.keys = keys, .fpr = fpr, .generations = generations}, from);
    if (made.ages()) refuse_forever(name_of(made.kind()));
    return made;
  }
  Window::Params params;
  params.spec = *window;
  params.anchor = anchor;
  params.filter = filter;
  params.fpr = fpr;
  params.keys = keys;
  params.generations = generations;
  params.listed = listed;
  params.memory = memory;
  return AnyFilter(Window::make(params, from));
}

namespace {

constexpr std::uint8_t kVersion = 1;

void encode_optional(const std::optional<std::uint64_t>& value, Encoder& to) {
  to.u8(value ? 1 : 0);
  if (value) to.varint(*value);
}

[[noreturn]] void refuse(const char* what) {
  throw CorruptSnapshot(fmt::format("what is to be made is damaged: {}", what));
}

bool decode_flag(Decoder& from) {
  const std::uint8_t flag = from.u8();
  if (flag > 1) refuse("a flag is neither 0 nor 1");
  return flag == 1;
}

std::optional<std::uint64_t> decode_optional(Decoder& from) {
  if (!decode_flag(from)) return std::nullopt;
  return from.varint();
}

}  // namespace

void Making::encode(Encoder& to) const {
  to.u8(kVersion);
  to.bytes(secret.bytes());
  to.u8(static_cast<std::uint8_t>(hash));
  to.u64(static_cast<std::uint64_t>(made_ms));
  to.varint(audit);
  to.varint(filter.size());
  to.bytes(std::as_bytes(std::span(filter)));
  encode_optional(keys, to);
  to.f64(fpr);
  encode_optional(generations, to);
  to.u8(window ? static_cast<std::uint8_t>(window->kind) : 0);
  if (window) to.varint(window->size);
  to.u8(anchor == Anchor::refreshed ? 1 : 0);
  to.u8(listed ? 1 : 0);
  encode_optional(memory, to);
  to.varint(expansion);
}

Making Making::decode(Decoder& from) {
  if (from.u8() != kVersion) refuse("it was written by another version");
  std::array<std::byte, Secret::kBytes> secret;
  from.bytes(secret);
  Making making{.secret = Secret::from_bytes(secret)};
  const std::uint8_t hash = from.u8();
  if (hash != static_cast<std::uint8_t>(HashKind::xxh3) &&
      hash != static_cast<std::uint8_t>(HashKind::highway))
    refuse("there is no such hash");
  making.hash = HashKind{hash};
  making.made_ms = static_cast<std::int64_t>(from.u64());
  making.audit = from.varint();
  const std::uint64_t length = from.varint();
  if (length > kMostFilterText || length > from.remaining())
    refuse("the filter's text is too long");
  making.filter.resize(length);
  from.bytes(std::as_writable_bytes(std::span(making.filter)));
  making.keys = decode_optional(from);
  making.fpr = from.f64();
  if (const auto generations = decode_optional(from)) {
    if (*generations > std::numeric_limits<unsigned>::max()) refuse("too many generations");
    making.generations = static_cast<unsigned>(*generations);
  }
  if (const std::uint8_t kind = from.u8(); kind != 0) {
    if (kind > static_cast<std::uint8_t>(WindowSpec::Kind::landmark)) refuse("no such window");
    making.window = WindowSpec{WindowSpec::Kind{kind}, from.varint()};
  }
  making.anchor = decode_flag(from) ? Anchor::refreshed : Anchor::delivered;
  making.listed = decode_flag(from);
  making.memory = decode_optional(from);
  const std::uint64_t expansion = from.varint();
  if (expansion > std::numeric_limits<std::uint16_t>::max()) refuse("an impossible EXPANSION");
  making.expansion = static_cast<std::uint16_t>(expansion);
  return making;
}

}  // namespace sluice::server
