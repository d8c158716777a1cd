// Commands about items: add, ask, take back.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/items.hpp"
#include "apps/redis/making.hpp"
#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::server {
namespace {

// 1: distinct, deliver it. 0: duplicate. 2: pending.
std::int64_t added(Verdict verdict) noexcept {
  return verdict == Verdict::distinct ? 1 : verdict == Verdict::duplicate ? 0 : 2;
}

std::int64_t found(Verdict verdict) noexcept {
  return static_cast<std::int64_t>(verdict);
}

std::string why_refused(const Host& host, const Entry& entry) {
  if (over_limit(host.config(), entry)) return "OOM " + why_over_limit(host, entry);
  if (const Window* const window = entry.window(); window != nullptr && window->used_up())
    return fmt::format("OOM {}", in_command_words(window->why_full()));
  return "OOM the server has no memory for more items of this key: raise maxmemory, or delete "
         "other keys";
}

// Judges the items, and answers for each. `many`: with an array. What there is no memory for is asked about:
// only new items are refused, so that nobody who handles those handles a repeat.
void add_items(const Call& call, Place& place, std::span<const std::string_view> items,
               const Entry::When& when, bool many) {
  const Entry& entry = *place.entry();
  Items<Verdict> asked(entry, items);
  const std::size_t judged =
      over_limit(call.host.config(), entry)
          ? 0
          : judge(call.host, place, 1, asked.digests(), when, asked.answers());
  const auto rest = asked.answers().subspan(judged);
  std::string why;
  if (!rest.empty()) {
    why = why_refused(call.host, entry);
    entry.ask(asked.digests().subspan(judged), when, rest);
    counters().refused += static_cast<std::uint64_t>(std::ranges::count(rest, Verdict::distinct));
  }
  if (many) call.reply.array(items.size());
  for (const Verdict verdict : asked.answers().first(judged)) call.reply.integer(added(verdict));
  for (const Verdict verdict : rest) {
    if (verdict == Verdict::distinct)
      call.reply.error(why);
    else
      call.reply.integer(added(verdict));
  }
}

void ask_items(const Call& call, std::span<const std::string_view> items, Entry::When when,
               std::optional<std::string_view> at, bool many) {
  const Entry* const entry = call.host.open(1, Host::Access::read).entry();
  if (entry != nullptr && at) when.at_ms = read_at(*at, window_of(*entry), when.now_ms);
  if (entry == nullptr) {
    if (many) call.reply.array(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) call.reply.integer(0);
    return;
  }
  Items<Verdict> asked(*entry, items);
  entry->ask(asked.digests(), when, asked.answers());
  if (many) call.reply.array(items.size());
  for (const Verdict verdict : asked.answers()) call.reply.integer(found(verdict));
}

// After `key item`: [AT ms]. `many` is the command that takes several items.
std::optional<std::string_view> read_at_option(Words& words, const char* many) {
  std::optional<std::string_view> at;
  if (words.take("AT")) at = words.next("the value of AT");
  if (!words.empty())
    throw BadParameters(
        fmt::format("{} is not expected here: {} takes several items", quoted(words.peek()), many));
  return at;
}

[[noreturn]] void refuse_option(const std::string& has, const std::string& wants) {
  throw BadParameters(fmt::format(
      "the key exists with {}, and not with {}: leave the option out, or DEL the key to make it "
      "anew. Nothing was added",
      has, wants));
}

// The options of INSERT are repeated with each call. Where the key is something else than they say, items would be
// judged otherwise than the caller believes. Options that are left out agree with every key, and so do those that only
// say how large it is made.
void check_agrees(Host& host, const Entry& entry, const Wanted& wanted) {
  const Window* const window = entry.window();
  const PlanRequest& request = wanted.request;
  // With MEMORY alone, what is to be remembered forever is planned as a window.
  const std::optional<WindowSpec> wants =
      wanted.window_given && !request.window && request.memory && window_of(entry)
          ? decide(wanted, host.config(), host.memory().costs()).plan.window
          : request.window;
  if (wanted.window_given && window_of(entry) != wants) {
    const auto text = [](const std::optional<WindowSpec>& spec, bool refreshed) {
      return spec ? fmt::format("a window of {}", describe(*spec, refreshed))
                  : std::string("no window");
    };
    refuse_option(
        text(window_of(entry), window != nullptr && window->params().anchor == Anchor::refreshed),
        text(wants, request.anchor == Anchor::refreshed));
  }
  if (request.anchor == Anchor::refreshed &&
      (window == nullptr || window->params().anchor != Anchor::refreshed))
    refuse_option("items that repeats do not refresh", "REFRESH");
  if (!wanted.filter.empty()) {
    const std::string_view has =
        window != nullptr ? window->filter_name() : name_of(entry.filter().kind());
    const auto name_in = [](std::string_view text) { return text.substr(0, text.find(',')); };
    // Some names are those of several filters: which one is made, the planner knows, and keeps.
    if (name_in(wanted.filter) != has) {
      Wanted meant = wanted;
      meant.request.window = window_of(entry);
      if (name_in(decide(meant, host.config(), host.memory().costs()).plan.filter) != has)
        refuse_option(fmt::format("filter {}", has),
                      fmt::format("filter {}", name_in(wanted.filter)));
    }
  }
  if (!request.fpr) return;
  // It may be more exact than was asked for.
  const double made_for =
      window != nullptr ? window->params().fpr : entry.filter().stats().target_fpr;
  if (made_for > *request.fpr * (1 + 1e-9))
    refuse_option(fmt::format("an error of {:.3g}", made_for),
                  fmt::format("FPR {:.3g}", *request.fpr));
}

}  // namespace

void add(const Call& call) {
  Words words(call.words.subspan(3), 3);
  const auto at = read_at_option(words, "SLUICE.MADD");
  Place& place = call.host.open(1, Host::Access::write);
  const Entry& entry = existing(place);
  Entry::When when{.now_ms = call.host.now_ms()};
  if (at) when.at_ms = read_at(*at, window_of(entry), when.now_ms);
  add_items(call, place, call.words.subspan(2, 1), when, false);
}

void madd(const Call& call) {
  check_items(call.words.subspan(2),
              "SLUICE.MADD has no options; SLUICE.INSERT key NOCREATE AT ms ITEMS item... has");
  Place& place = call.host.open(1, Host::Access::write);
  existing(place);
  add_items(call, place, call.words.subspan(2), {.now_ms = call.host.now_ms()}, true);
}

void insert(const Call& call) {
  redact_seeds(call, 2);
  Words words(call.words.subspan(2), 2);
  Wanted wanted;
  std::optional<std::string_view> at;
  bool create = true;
  while (!words.take("ITEMS")) {
    if (words.empty()) throw BadParameters("ITEMS is missing, with the items to add after it");
    if (words.take("NOCREATE")) {
      create = false;
    } else if (words.take("AT")) {
      if (at) throw BadParameters("AT is given twice");
      at = words.next("the value of AT");
    } else if (!read_option(words, wanted)) {
      throw BadParameters(
          fmt::format("{} is no option of SLUICE.INSERT: its options are {}, NOCREATE, AT, and "
                      "ITEMS before the items",
                      quoted(words.peek()), kOptionNames));
    }
  }
  if (words.empty()) throw BadParameters("ITEMS needs at least one item after it");
  check_items(call.words.last(words.size()), "options come before ITEMS");
  Place& place = call.host.open(1, Host::Access::write);
  Entry::When when{.now_ms = call.host.now_ms()};
  if (const Entry* const entry = place.entry(); entry != nullptr || !create) {
    check_agrees(call.host, existing(place, "leave NOCREATE out, or make it with SLUICE.RESERVE"),
                 wanted);
    if (at) when.at_ms = read_at(*at, window_of(*entry), when.now_ms);
  } else {
    const Decided decided = decide(wanted, call.host.config(), call.host.memory().costs());
    if (at) when.at_ms = read_at(*at, decided.plan.window, when.now_ms);
    check_room(call.host, decided.bytes);
    make_entry(call.host, place, 1, making_of(wanted, decided, when.now_ms));
  }
  add_items(call, place, words.rest(), when, true);
}

void exists(const Call& call) {
  Words words(call.words.subspan(3), 3);
  const auto at = read_at_option(words, "SLUICE.MEXISTS");
  ask_items(call, call.words.subspan(2, 1), {.now_ms = call.host.now_ms()}, at, false);
}

void mexists(const Call& call) {
  check_items(call.words.subspan(2),
              "SLUICE.MEXISTS has no options; SLUICE.EXISTS key item AT ms has");
  ask_items(call, call.words.subspan(2), {.now_ms = call.host.now_ms()}, std::nullopt, true);
}

void age(const Call& call) {
  Place& place = call.host.open(1, Host::Access::read);
  // As EXISTS answers 0.
  if (place.entry() == nullptr) return call.reply.null();
  const Entry& entry = *place.entry();
  if (!entry.knows_ages())
    throw BadParameters(fmt::format(
        "{} does not know how old items are: windows of the filters {} do",
        entry.window() == nullptr ? "a key without a WINDOW"
                                  : fmt::format("filter '{}'", entry.window()->filter_name()),
        Window::kFiltersThatKnowAges));
  const auto age_of = entry.age_of(entry.hasher().digest(call.words[2]), call.host.now_ms());
  if (age_of)
    call.reply.integer(static_cast<std::int64_t>(*age_of));
  else
    call.reply.null();
}

namespace {

void forget_items(const Call& call, bool many) {
  Place& place = call.host.open(1, Host::Access::write);
  const auto items = call.words.subspan(2);
  // A window may have expired: it remembers nothing then, and there is nothing to take back.
  if (place.entry() == nullptr) {
    if (many) call.reply.array(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) call.reply.integer(0);
    return;
  }
  const Entry& entry = *place.entry();
  if (!entry.can_forget())
    throw BadParameters(fmt::format(
        "filter '{}' cannot take items back: the planner chooses one that can for a WINDOW without "
        "SLACK, and if neither EXPECT nor MEMORY is given",
        entry.window() != nullptr ? entry.window()->filter_name()
                                  : name_of(entry.filter().kind())));
  Items<Verdict> asked(entry, items);
  forget(call.host, place, 1, asked.digests(), call.host.now_ms(), asked.answers());
  if (many) call.reply.array(items.size());
  for (const Verdict verdict : asked.answers()) call.reply.integer(found(verdict));
}

}  // namespace

void forget(const Call& call) {
  forget_items(call, false);
}

void mforget(const Call& call) {
  forget_items(call, true);
}

}  // namespace sluice::server
