// A filter site: where a whole filter or window lives, for the keys that belong to it. FilterSlices
// uses only these operations, so it works the same on filters of this process (local_filter.hpp)
// and on servers.
//
// A request is one verb on many keys, with their times if the filter is a window of time. A site
// judges the keys in order, and each in one step: of producers that race for a key one wins. Other
// requests may come between two keys. Requests are sent first and received later, as those of a
// Site (site.hpp).
//
// A site object is one producer's connection and is used by one thread. Producers share the filter
// behind it, and must hash keys under the same secret.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "sluice/cluster/site.hpp"
#include "sluice/hash/digest.hpp"

namespace sluice::cluster {

enum class FilterVerb : std::uint8_t {
  observe,      // asks and remembers
  may_contain,  // asks only
  insert,       // remembers only
};

// What a site says of one key.
enum class Answer : std::uint8_t {
  distinct,
  duplicate,
  // No verdict on this key, and it is not remembered: for instance since the site has no memory for
  // it. The other keys of the request have their answers.
  none,
  // The same, and the site never takes this key at this time, such as a time far ahead of its
  // clock. It says nothing about the site.
  refused,
};

class FilterSite {
 public:
  struct Request {
    FilterVerb verb = FilterVerb::observe;
    std::span<const Digest> digests = {};
    // When each event happened, in ms since 1970. Required for a window of time; empty for all
    // other filters.
    std::span<const std::int64_t> times_ms = {};
    // What time it is for the producer when it brings each key, by more than one event: empty, or one
    // per time, and none before it, or kNotSaid. A window that can be told judges the key as of then,
    // even if no event of that time ever comes to it, and believes it.
    std::span<const std::int64_t> nows_ms = {};
    // Whether the caller will ask since when duplicates are remembered.
    bool wants_since = false;
  };

  // Of nows_ms: before all other times.
  static constexpr std::int64_t kNotSaid = -4'611'686'018'427;
  // Of since_ms(): the site does not know.
  static constexpr std::int64_t kUnknownSince = std::numeric_limits<std::int64_t>::min();

  virtual ~FilterSite() = default;

  // Sends a request and does not wait. Digests and times must not change until the reply is
  // received. One request at a time: send, receive, send, receive. A request without keys asks
  // whether the site is there.
  virtual void send(const Request& request) = 0;

  // Waits for the reply. If the outcome is `answered`, answers[i] is about key i of the request;
  // after an insert only `none` and `refused` mean anything: the key is not remembered. For every
  // other outcome the answers are left alone, and the incarnation is 0. It is another one than
  // before if the filter has lost its contents since it was last asked, or while it answered.
  // Never throws for a site that cannot be reached: that is an outcome.
  virtual Reply receive(std::span<Answer> answers) = 0;

  // Why the last request was not answered, or keys of it were not: for people. Empty if all were,
  // or if it does not know. Valid until the next request.
  virtual std::string_view problem() const noexcept { return {}; }

  // Of the last request that was answered, if it wanted to know: for each duplicate, an event time
  // with which another window of the same kind would forget the key no later than this one does. Of
  // other keys they mean nothing. Empty: no site of this kind knows. Valid until the next request.
  virtual std::span<const std::int64_t> since_ms() const noexcept { return {}; }

  Reply ask(const Request& request, std::span<Answer> answers) {
    send(request);
    return receive(answers);
  }
};

}  // namespace sluice::cluster
