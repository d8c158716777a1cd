// The commands of RedisBloom 2.x, for clients that speak them: their arguments, replies and error texts, of which
// some have no code before them.
// bf_filters.hpp says what keys they make.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "apps/redis/bf_filters.hpp"
#include "apps/redis/chunks.hpp"
#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/items.hpp"
#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"

namespace sluice::server {
namespace {

std::optional<double> read_real(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  // Too small for a double is 0, and too large infinite: both are outside of every range here.
  if (error == std::errc::result_out_of_range && end == word.data() + word.size()) return 0;
  if (error != std::errc() || end != word.data() + word.size() || std::isnan(number))
    return std::nullopt;
  return number;
}

std::optional<std::int64_t> read_whole(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_number_of_words(std::string_view command) {
  throw BadParameters(fmt::format("wrong number of arguments for '{}' command", command));
}

Entry& found(Place& place) {
  Entry* const entry = place.entry();
  if (entry == nullptr) throw BadParameters("not found");
  return *entry;
}

// --- Adding

// What became of the items of one command, in their order.
struct Added {
  std::size_t judged = 0;
  bool full = false;  // the next one does not fit into the filters that there are
};

// Judges as long as what is new fits into the filters that there are.
Added judge_within_room(const Call& call, Place& place, Items<Verdict>& asked,
                        const Entry::When& when) {
  constexpr std::size_t kTogether = 512;
  const auto digests = asked.digests();
  const auto verdicts = asked.answers();
  Added added;
  while (added.judged < digests.size()) {
    const std::uint64_t room = bf_room(*place.entry());
    const std::size_t left = digests.size() - added.judged;
    std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left, room));
    if (count < std::min(left, kTogether)) {
      // Only new items need room: those before the first that has none.
      const std::size_t some = std::min(left, kTogether);
      const auto answers = verdicts.subspan(added.judged, some);
      place.entry()->ask(digests.subspan(added.judged, some), when, answers);
      std::uint64_t fresh = 0;
      const auto end = std::ranges::find_if(
          answers, [&](Verdict verdict) { return verdict == Verdict::distinct && ++fresh > room; });
      count = static_cast<std::size_t>(end - answers.begin());
    }
    if (count == 0) {
      added.full = true;
      break;
    }
    const std::size_t judged = judge(call.host, place, 1, digests.subspan(added.judged, count),
                                     when, verdicts.subspan(added.judged, count));
    added.judged += judged;
    if (judged < count) break;
  }
  return added;
}

void add_items(const Call& call, Place& place, std::span<const std::string_view> items, bool many) {
  const Entry& entry = *place.entry();
  check_memory(call.host, entry);
  const Entry::When when{.now_ms = call.host.now_ms()};
  Items<Verdict> asked(entry, items);
  Added added;
  if (bf_room(entry) < items.size() && !bf_may_grow(call.host, entry))
    added = judge_within_room(call, place, asked, when);
  else
    added.judged = judge(call.host, place, 1, asked.digests(), when, asked.answers());

  // As in RedisBloom, what comes after the item that found the filter full is neither judged nor answered.
  const bool ends = added.full && entry.expansion() == Entry::kNonScaling;
  if (many) call.reply.array(ends ? added.judged + 1 : items.size());
  for (const Verdict verdict : asked.answers().first(added.judged))
    call.reply.boolean(verdict == Verdict::distinct);
  if (ends) {
    call.reply.error("ERR non scaling filter is full");
    return;
  }
  for (std::size_t i = added.judged; i < items.size(); ++i)
    call.reply.error("OOM problem inserting into filter: there is no memory for it to grow");
}

// BF.ADD and BF.MADD.
void add_or_create(const Call& call, bool many) {
  Place& place = call.host.open(1, Host::Access::write);
  if (place.entry() == nullptr) make_bf(call.host, place, {});
  add_items(call, place, call.words.subspan(2), many);
}

void bf_add(const Call& call) {
  add_or_create(call, false);
}

void bf_madd(const Call& call) {
  add_or_create(call, true);
}

void bf_insert(const Call& call) {
  Words words(call.words.subspan(2), 2);
  BfWanted wanted;
  bool make = true;
  const auto value = [&] {
    if (words.empty()) refuse_number_of_words("bf.insert");
    return words.next("a value");
  };
  std::int64_t capacity = static_cast<std::int64_t>(wanted.capacity);
  while (!words.empty() && !words.take("ITEMS")) {
    if (words.take("NOCREATE")) {
      make = false;
    } else if (words.take("NONSCALING")) {
      wanted.nonscaling = true;
    } else if (words.take("ERROR")) {
      const auto error = read_real(value());
      if (!error) throw Verbatim("Bad error rate");
      wanted.error = *error;
    } else if (words.take("CAPACITY")) {
      const auto number = read_whole(value());
      if (!number) throw Verbatim("Bad capacity");
      capacity = *number;
    } else if (words.take("EXPANSION")) {
      const auto number = read_whole(value());
      if (!number) throw Verbatim("Bad expansion");
      wanted.expansion = *number;
    } else {
      throw Verbatim("Unknown argument received");
    }
    // Without ITEMS, or with nothing after it.
    if (words.empty()) refuse_number_of_words("bf.insert");
  }
  if (words.empty()) refuse_number_of_words("bf.insert");
  if (!(wanted.error > 0 && wanted.error < 1) || capacity < 1 || wanted.expansion < 1)
    throw Verbatim("Bad argument received");
  wanted.capacity = static_cast<std::uint64_t>(capacity);
  Place& place = call.host.open(1, Host::Access::write);
  if (make && place.entry() == nullptr) make_bf(call.host, place, wanted);
  found(place);
  add_items(call, place, words.rest(), true);
}

// --- The others

void bf_reserve(const Call& call) {
  if (call.words.size() > 7) refuse_number_of_words("bf.reserve");
  BfWanted wanted;
  const auto error = read_real(call.words[2]);
  if (!error) throw BadParameters("bad error rate");
  if (!(*error > 0 && *error < 1)) throw BadParameters("(0 < error rate range < 1) ");
  wanted.error = *error;
  const auto capacity = read_whole(call.words[3]);
  if (!capacity) throw BadParameters("bad capacity");
  if (*capacity <= 0) throw BadParameters("(capacity should be larger than 0)");
  wanted.capacity = static_cast<std::uint64_t>(*capacity);
  // Other words are passed over, as RedisBloom does.
  std::optional<std::string_view> expansion;
  for (Words words(call.words.subspan(4), 4); !words.empty();) {
    if (words.take("NONSCALING")) {
      wanted.nonscaling = true;
    } else if (words.take("EXPANSION")) {
      if (words.empty()) throw BadParameters("no expansion");
      expansion = words.next("the value of EXPANSION");
    } else {
      words.next("a word");
    }
  }
  if (expansion) {
    if (wanted.nonscaling) throw Verbatim("Nonscaling filters cannot expand");
    const auto number = read_whole(*expansion);
    if (!number) throw BadParameters("bad expansion");
    if (*number < 1) throw BadParameters("expansion should be greater or equal to 1");
    wanted.expansion = *number;
  }
  Place& place = call.host.open(1, Host::Access::write);
  if (place.entry() != nullptr) throw BadParameters("item exists");
  make_bf(call.host, place, wanted);
  call.reply.status("OK");
}

// Keys of other types hold no items, as in RedisBloom.
const Entry* entry_or_none(Place& place) {
  try {
    return place.entry();
  } catch (const WrongType&) {
    return nullptr;
  }
}

void ask_items(const Call& call, bool many) {
  const auto items = call.words.subspan(2);
  const Entry* const entry = entry_or_none(call.host.open(1, Host::Access::read));
  if (entry == nullptr) {
    if (many) call.reply.array(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) call.reply.boolean(false);
    return;
  }
  Items<Verdict> asked(*entry, items);
  entry->ask(asked.digests(), {.now_ms = call.host.now_ms()}, asked.answers());
  if (many) call.reply.array(items.size());
  for (const Verdict verdict : asked.answers()) call.reply.boolean(verdict != Verdict::distinct);
}

void bf_exists(const Call& call) {
  ask_items(call, false);
}

void bf_mexists(const Call& call) {
  ask_items(call, true);
}

void bf_info(const Call& call) {
  if (call.words.size() > 3) refuse_number_of_words("bf.info");
  const Entry& entry = found(call.host.open(1, Host::Access::read));
  const BfNumbers numbers = bf_numbers(entry);
  const bool grows = entry.expansion() != 0 && entry.expansion() != Entry::kNonScaling;
  struct Field {
    const char* word;
    const char* name;
    std::optional<std::uint64_t> value;
  };
  const std::array<Field, 5> fields{{
      {"CAPACITY", "Capacity", numbers.capacity},
      {"SIZE", "Size", entry.bytes()},
      {"FILTERS", "Number of filters", numbers.filters},
      {"ITEMS", "Number of items inserted", numbers.items},
      {"EXPANSION", "Expansion rate",
       grows ? std::optional<std::uint64_t>(entry.expansion()) : std::nullopt},
  }};
  const auto say = [&](const Field& field) {
    if (field.value)
      call.reply.integer(static_cast<std::int64_t>(*field.value));
    else
      call.reply.null();
  };
  if (call.words.size() == 3) {
    const auto field = std::ranges::find_if(
        fields, [&](const Field& each) { return same_word(each.word, call.words[2]); });
    if (field == fields.end()) throw Verbatim("Invalid information value");
    call.reply.array(1);
    say(*field);
    return;
  }
  call.reply.map(fields.size());
  for (const Field& field : fields) {
    call.reply.status(field.name);
    say(field);
  }
}

void bf_card(const Call& call) {
  const Entry* const entry = call.host.open(1, Host::Access::read).entry();
  call.reply.integer(entry == nullptr ? 0 : static_cast<std::int64_t>(bf_numbers(*entry).items));
}

// Chunks are those of SLUICE.SCANDUMP. Their own errors say more than RedisBloom's, and stay.
void bf_scandump(const Call& call) {
  const auto cursor = read_whole(call.words[2]);
  if (!cursor || *cursor == 0) found(call.host.open(1, Host::Access::read));
  if (!cursor) throw Verbatim("Second argument must be numeric");
  scandump(call);
}

void bf_loadchunk(const Call& call) {
  const auto cursor = read_whole(call.words[2]);
  if (!cursor) throw BadParameters("Second argument must be numeric");
  Place& place = call.host.open(1, Host::Access::read);
  // One that is being loaded has no entry yet.
  const bool missing = place.partial() == nullptr && place.entry() == nullptr;
  try {
    Chunk::read(std::as_bytes(std::span(call.words[3])));
  } catch (const BadParameters&) {
    throw BadParameters(missing && *cursor != 1 ? "not found" : "received bad data");
  }
  loadchunk(call);
}

// In lower case: the server names them in its own errors.
constexpr std::array kCommands = {
    Command{"bf.reserve", bf_reserve, "write deny-oom", -4, 1, 1, 1,
            "key error_rate capacity [EXPANSION expansion] [NONSCALING]",
            "Makes a filter for some items, which grows beyond them unless NONSCALING is given.",
            "O(capacity)", false, false, KeyUse::made},
    Command{"bf.add", bf_add, "write deny-oom fast", 3, 1, 1, 1, "key item",
            "Adds an item: 1 if it is new, 0 if it may have been added before. Makes the key if it "
            "does not exist.",
            "O(filters)"},
    Command{"bf.madd", bf_madd, "write deny-oom", -3, 1, 1, 1, "key item [item ...]",
            "Adds several items, as BF.ADD does.", "O(n * filters) for n items"},
    Command{"bf.insert", bf_insert, "write deny-oom", -4, 1, 1, 1,
            "key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] "
            "ITEMS item [item ...]",
            "Makes the key as BF.RESERVE does if it does not exist, then adds the items.",
            "O(n * filters) for n items"},
    Command{"bf.exists", bf_exists, "readonly fast", 3, 1, 1, 1, "key item",
            "Asks whether an item may have been added: 1 or 0.", "O(filters)"},
    Command{"bf.mexists", bf_mexists, "readonly", -3, 1, 1, 1, "key item [item ...]",
            "Asks for several items, as BF.EXISTS does.", "O(n * filters) for n items"},
    Command{"bf.info", bf_info, "readonly fast", -2, 1, 1, 1,
            "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
            "Shows capacity, size, number of filters and items, and growth of a key.",
            "O(filters)"},
    Command{"bf.card", bf_card, "readonly fast", 2, 1, 1, 1, "key",
            "Counts the items that were new when they were added.", "O(filters)"},
    Command{"bf.scandump", bf_scandump, "readonly", 3, 1, 1, 1, "key cursor",
            "Dumps a key in chunks, as SLUICE.SCANDUMP does.", "O(bytes of the chunk)", false,
            true},
    Command{"bf.loadchunk", bf_loadchunk, "write deny-oom", 4, 1, 1, 1, "key cursor chunk",
            "Loads a chunk, as SLUICE.LOADCHUNK does.", "O(bytes of the chunk)"},
};

}  // namespace

std::span<const Command> bf_commands() {
  return kCommands;
}

}  // namespace sluice::server
