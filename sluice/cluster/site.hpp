// A site: where a slice of a filter lives. Slices and trees use only these operations, so they work
// the same on sites of this process (local_site.hpp) and on servers.
//
// A site holds bits, numbered from 0. A request is one verb on many positions; a site processes the
// positions in order and does nothing else in between, so a request to one site is atomic, up to
// kAtomicPositions: a site may cut a longer one. Claims are atomic one by one. Requests are sent
// first and received later: a caller that needs many sites sends to all of them before it waits for
// any.
//
// A site object is one producer's connection and is used by one thread. Producers share the site
// behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::cluster {

enum class Verb : std::uint8_t {
  test,          // answer: whether the bit is set
  set,           // no answers
  test_and_set,  // answer: whether the bit was set before
  claim,         // positions are names of keys; answer: whether somebody held the claim already
  release,       // names that this producer holds the claim of, and no others; no answers
};

enum class Outcome : std::uint8_t {
  answered,
  late,    // no answer in time: the request may have been done, or may be done later
  failed,  // not reached: nothing was done
};

struct Reply {
  Outcome outcome = Outcome::failed;
  // If the number changes, the site has lost its contents and came back empty.
  std::uint64_t incarnation = 0;
  bool answered() const noexcept { return outcome == Outcome::answered; }
};

class Site {
 public:
  // Bounds how long a server does nothing else: 1.6 ms where a bit takes it 0.4 µs.
  static constexpr std::size_t kAtomicPositions = 4096;

  virtual ~Site() = default;

  virtual std::uint64_t bits() const = 0;

  // Sends a request and does not wait. `positions` must not change until the reply is received. One
  // request at a time: send, receive, send, receive.
  virtual void send(Verb verb, std::span<const std::uint64_t> positions) = 0;

  // Waits for the reply. answers[i] is 1 or 0 for position i of the request, where the verb has
  // answers and the outcome is `answered`; otherwise they are left alone. Never throws for a site
  // that cannot be reached: that is an outcome.
  virtual Reply receive(std::span<std::uint8_t> answers) = 0;

  Reply ask(Verb verb, std::span<const std::uint64_t> positions, std::span<std::uint8_t> answers) {
    send(verb, positions);
    return receive(answers);
  }
};

}  // namespace sluice::cluster
