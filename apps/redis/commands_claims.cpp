// Commands about delivery: claim, confirm, release (sluice/judge/claims.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/items.hpp"
#include "apps/redis/making.hpp"
#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"

namespace sluice::server {
namespace {

// What every command of these has: `key item` and options, or `key`, options and ITEMS.
struct Asked {
  std::optional<std::string_view> token = {}, at = {};
  std::optional<std::int64_t> lease_ms = {};
  std::span<const std::string_view> items = {};
};

void set_once(std::optional<std::string_view>& field, const char* option, Words& words) {
  if (field) throw BadParameters(fmt::format("{} is given twice", option));
  field = words.next(fmt::format("the value of {}", option));
}

Asked read(const Call& call, bool many, bool leases, bool times) {
  Asked asked;
  const Command& command = *command_named(call.words[0]);
  Words words(call.words.subspan(many ? 2 : 3), many ? 2 : 3);
  while (!words.empty()) {
    if (words.take("TOKEN")) {
      set_once(asked.token, "TOKEN", words);
    } else if (leases && words.take("TTL")) {
      if (asked.lease_ms) throw BadParameters("TTL is given twice");
      asked.lease_ms =
          whole_number("TTL, in ms,", words.next("the value of TTL"), 1, kLongestLeaseMs);
    } else if (times && words.take("AT")) {
      set_once(asked.at, "AT", words);
    } else if (many && words.take("ITEMS")) {
      asked.items = words.rest();
    } else {
      refuse_words(command,
                   fmt::format("{} is no option of {}: its options are {}TOKEN{}{}",
                               quoted(words.peek()), command.name, leases ? "TTL, " : "",
                               times ? ", AT" : "", many ? ", and ITEMS before the items" : ""));
    }
  }
  if (!many) asked.items = call.words.subspan(2, 1);
  if (asked.items.empty()) refuse_words(command, "ITEMS is missing, with the items after it");
  if (many && times) check_items(asked.items, "options come before ITEMS");
  // What stands after ITEMS is an item.
  const auto among_items = [&](const char* option) {
    const bool found = many && std::ranges::any_of(asked.items, [&](std::string_view item) {
                         return same_word(item, option);
                       });
    return found ? " (options come before ITEMS: what follows it are items)" : "";
  };
  if (!asked.token)
    refuse_words(command,
                 fmt::format("TOKEN is missing: a text of your own that nobody else uses{}",
                             among_items("TOKEN")));
  if (asked.token->empty())
    refuse_words(command, "TOKEN is empty: give a text of your own that nobody else uses");
  if (leases && !asked.lease_ms)
    refuse_words(command,
                 fmt::format("TTL is missing: how many ms you have to deliver and confirm{}",
                             among_items("TTL")));
  return asked;
}

// What is replied for an item that could not be claimed.
std::string text_of(const std::exception_ptr& problem) {
  if (!problem) return {};
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& error) {
    return error_text(error);
  }
}

Claimant claimant_of(const Call& call, const Asked& asked, const Entry& entry) {
  Claimant claimant{.token = entry.hasher().digest(*asked.token),
                    .when = {.now_ms = call.host.now_ms()},
                    .lease_ms = asked.lease_ms.value_or(0)};
  if (asked.at) claimant.when.at_ms = read_at(*asked.at, window_of(entry), claimant.when.now_ms);
  return claimant;
}

// Does `work` with the claimant, the items' digests and room for the answers; it returns for how many there
// are answers, and why not for the others.
template <class Answer, class Work>
void run_claims(const Call& call, bool many, bool leases, bool times, const Work& work) {
  const Asked asked = read(call, many, leases, times);
  Place& place = call.host.open(1, Host::Access::write);
  const Entry& entry =
      existing(place, leases ? kMakeIt : "its claims are gone with it, so claim the item again");
  const Claimant claimant = claimant_of(call, asked, entry);
  Items<Answer> items(entry, asked.items);
  const auto [answered, problem] = work(place, claimant, items);
  const std::string why = text_of(problem);
  if (many) call.reply.array(asked.items.size());
  for (const Answer answer : items.answers().first(answered))
    call.reply.integer(static_cast<std::int64_t>(answer));
  for (std::size_t i = answered; i < asked.items.size(); ++i) call.reply.error(why);
}

// To claim again with the same token renews a lease. But within one command whoever reads the answers would
// deliver an item twice: the first answer says that it is theirs, and the others that it is being delivered.
class Repeats {
 public:
  // Before anything happens: takes memory.
  explicit Repeats(std::span<const Digest> items) {
    if (items.size() < 2) return;
    order_.resize(items.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, {},
                      [&](std::size_t i) { return std::tuple(items[i].lo, items[i].hi, i); });
  }
  void mark(std::span<const Digest> items, std::span<ClaimAnswer> answers) const {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const std::size_t here = order_[i];
      if (items[here] == items[order_[i - 1]] && here < answers.size() &&
          answers[here] == ClaimAnswer::claimed)
        answers[here] = ClaimAnswer::pending;
    }
  }

 private:
  std::vector<std::size_t> order_;
};

void run_claim(const Call& call, bool many) {
  run_claims<ClaimAnswer>(
      call, many, true, true, [&](Place& place, const Claimant& claimant, auto& items) {
        if (over_limit(call.host.config(), *place.entry()))
          counters().refused += items.digests().size();
        check_memory(call.host, *place.entry());
        const Repeats repeats(items.digests());
        const Claimed claimed =
            claim(call.host, place, 1, claimant, items.digests(), items.answers());
        repeats.mark(items.digests(), items.answers().first(claimed.answered));
        return claimed;
      });
}

// An event has one time: to drop one of two in silence would be to remember the item at a time that somebody does
// not expect. Checked for all items before anything is confirmed, and not on replicas, which do what happened.
void check_times(const Entry& entry, const Claimant& claimant, std::span<const Digest> digests,
                 std::span<const std::string_view> items) {
  if (!claimant.when.at_ms) return;
  constexpr Nanoseconds kMs = 1'000'000;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const auto claimed = entry.claimed_at(
        {.item = digests[i], .token = claimant.token, .when = claimant.when, .lease_ms = 0});
    if (claimed && *claimed != *claimant.when.at_ms * kMs)
      throw BadParameters(fmt::format(
          "{} was claimed with AT {}, and is to be confirmed with AT {}: an event has one time, "
          "so leave AT out, or give that of the claim. Nothing was confirmed",
          quoted(items[i]), *claimed / kMs, *claimant.when.at_ms));
  }
}

void run_confirm(const Call& call, bool many) {
  run_claims<ConfirmAnswer>(
      call, many, false, true, [&](Place& place, const Claimant& claimant, auto& items) {
        const std::size_t count = items.digests().size();
        check_times(*place.entry(), claimant, items.digests(),
                    many ? call.words.last(count) : call.words.subspan(2, 1));
        confirm(call.host, place, 1, claimant, items.digests(), items.answers());
        return Claimed{.answered = items.answers().size()};
      });
}

void run_release(const Call& call, bool many) {
  run_claims<bool>(call, many, false, false,
                   [&](Place& place, const Claimant& claimant, auto& items) {
                     release(call.host, place, 1, claimant, items.digests(), items.answers());
                     return Claimed{.answered = items.answers().size()};
                   });
}

}  // namespace

void claim(const Call& call) {
  run_claim(call, false);
}
void mclaim(const Call& call) {
  run_claim(call, true);
}
void confirm(const Call& call) {
  run_confirm(call, false);
}
void mconfirm(const Call& call) {
  run_confirm(call, true);
}
void release(const Call& call) {
  run_release(call, false);
}
void mrelease(const Call& call) {
  run_release(call, true);
}

}  // namespace sluice::server
