// Commands about whole keys: make, plan, merge, describe.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/making.hpp"
#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::server {
namespace {

// `0.01 1000`, as BF.RESERVE takes them: how to say it here.
std::string as_of_redisbloom(Words words) {
  const auto rest = words.rest();
  const auto is_error = [](std::string_view word) {
    return word.starts_with("0.") && is_digits(word.substr(2)) && word.size() < 20;
  };
  if (rest.size() < 2 || !is_error(rest[0]) || !is_digits(rest[1]) || rest[1].size() > 20)
    return {};
  return fmt::format(" (what BF.RESERVE takes as {} {} is FPR {} EXPECT {} here)", rest[0], rest[1],
                     rest[0], rest[1]);
}

Wanted read_wanted(const Call& call, std::size_t first) {
  redact_seeds(call, first);
  Words words(call.words.subspan(first), first);
  Wanted wanted;
  while (read_option(words, wanted)) {
  }
  if (words.empty()) return wanted;
  const std::string why =
      fmt::format("{} is no option of {}: its options are {}", quoted(words.peek()),
                  command_named(call.words[0])->name, kOptionNames);
  throw BadParameters(why + as_of_redisbloom(words));
}

// Names and values, in the order in which they are shown.
class Fields {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;

  void add(std::string_view name, std::uint64_t value) {
    rows_.emplace_back(name, static_cast<std::int64_t>(value));
  }
  void add(std::string_view name, std::int64_t value) { rows_.emplace_back(name, value); }
  void add(std::string_view name, double value) { rows_.emplace_back(name, value); }
  void add(std::string_view name, std::string value) { rows_.emplace_back(name, std::move(value)); }

  void reply(Reply& to) const {
    to.map(rows_.size());
    for (const auto& [name, value] : rows_) {
      to.text(name);
      say(value, to);
    }
  }
  // One of them. Throws BadParameters, naming all.
  void reply_one(std::string_view name, Reply& to) const {
    std::string names;
    for (const auto& [each, value] : rows_) {
      if (same_word(each, name)) return say(value, to);
      names += (names.empty() ? "" : ", ") + std::string(each);
    }
    throw BadParameters(fmt::format("there is no field {}: choose one of {}", quoted(name), names));
  }

 private:
  static void say(const Value& value, Reply& to) {
    if (const auto* const integer = std::get_if<std::int64_t>(&value))
      to.integer(*integer);
    else if (const auto* const real = std::get_if<double>(&value))
      to.real(*real);
    else
      to.text(std::get<std::string>(value));
  }
  std::vector<std::pair<std::string_view, Value>> rows_;
};

std::string text_of(const std::optional<WindowSpec>& window, Anchor anchor) {
  return window ? describe(*window, anchor == Anchor::refreshed) : "forever";
}

// The best estimate, and its 95 % interval.
void add_rate(Fields& fields, const Rate& rate, std::string_view name, std::string_view low,
              std::string_view high) {
  fields.add(name, rate.value().value_or(0));
  fields.add(low, rate.low());
  fields.add(high, rate.high());
}

Fields fields_of(const Entry& entry, std::int64_t now_ms) {
  const AnyFilter& filter = entry.filter();
  const FilterStats stats = filter.stats();
  const Window* const window = entry.window();
  Fields fields;
  fields.add("filter",
             std::string(window != nullptr ? window->filter_name() : name_of(filter.kind())));
  fields.add("parameters",
             (window != nullptr ? window->filter_settings() : filter.settings()).text());
  fields.add("window", text_of(window_of(entry),
                               window != nullptr ? window->params().anchor : Anchor::delivered));
  fields.add("items", stats.keys);
  fields.add("capacity", stats.capacity);
  fields.add("bytes", entry.bytes());
  fields.add("listed", stats.listed);
  if (window != nullptr) {
    fields.add("generations", std::uint64_t{window->generations()});
    fields.add("slack", window->listed() ? 0.0 : window->slack());
    fields.add("growths", window->growths());
    fields.add("forgotten", window->forgotten_early());
  }
  fields.add("target_fpr", stats.target_fpr);
  fields.add("predicted_fpr", stats.predicted_fpr);
  fields.add("over_target", std::uint64_t{stats.over_target});
  fields.add("pending", entry.pending(now_ms));
  fields.add("hash", std::string(name_of(entry.hasher().kind())));
  fields.add("made_ms", entry.made_ms());
  fields.add("last_write_ms", entry.last_ms());
  if (entry.judge() != nullptr && entry.judge()->audit() != nullptr) {
    const Audit::Report report = entry.judge()->audit()->report();
    fields.add("audit_sample", fmt::format("1/{}", report.sample));
    fields.add("audit_items", report.keys);
    add_rate(fields, report.positives, "audit_fpr", "audit_fpr_low", "audit_fpr_high");
    add_rate(fields, report.negatives, "audit_fnr", "audit_fnr_low", "audit_fnr_high");
    fields.add("audit_since_ms", entry.made_ms());
  }
  return fields;
}

}  // namespace

void reserve(const Call& call) {
  const Wanted wanted = read_wanted(call, 2);
  Place& place = call.host.open(1, Host::Access::write);
  if (place.entry() != nullptr)
    throw BadParameters("the key exists already: DEL it first, or reserve another name");
  const Decided decided = decide(wanted, call.host.config(), call.host.memory().costs());
  check_room(call.host, decided.bytes);
  make_entry(call.host, place, 1, making_of(wanted, decided, call.host.now_ms()));
  call.reply.status("OK");
}

void plan_only(const Call& call) {
  const Wanted wanted = read_wanted(call, 1);
  const Decided decided = decide(wanted, call.host.config(), call.host.memory().costs());
  const Plan& plan = decided.plan;
  Fields fields;
  fields.add("filter", plan.filter);
  fields.add("parameters", plan.settings);
  fields.add("window", text_of(plan.window, plan.anchor));
  fields.add("items", plan.holds);
  fields.add("bytes", plan.bytes);
  fields.add("bits_per_item", plan.bits_per_key);
  fields.add("fpr", plan.fpr);
  fields.add("fnr", plan.fnr);
  fields.add("slack", plan.slack);
  fields.add("cache_lines", plan.lines);
  fields.add("reason", in_command_words(decided.reason));
  fields.reply(call.reply);
}

void info(const Call& call) {
  if (call.words.size() > 3) throw BadParameters("INFO takes a key and at most one field");
  Place& place = call.host.open(1, Host::Access::read);
  const Fields fields = fields_of(
      existing(place, "SCAN 0 TYPE sluiceflt lists those that are there"), call.host.now_ms());
  if (call.words.size() == 3)
    fields.reply_one(call.words[2], call.reply);
  else
    fields.reply(call.reply);
}

void merge_keys(const Call& call) {
  std::vector<std::size_t> sources;
  for (std::size_t word = 2; word < call.words.size(); ++word) sources.push_back(word);
  Place& place = call.host.open(1, Host::Access::write);
  merge(call.host, place, 1, sources, call.host.now_ms());
  call.reply.status("OK");
}

}  // namespace sluice::server
