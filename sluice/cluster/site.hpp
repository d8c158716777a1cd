// A site: where a slice of a filter lives. Slices and trees use only these operations, so they work
// the same on sites of this process (local_site.hpp) and on servers.
//
// A site holds cells, numbered from 0: bits, or numbers of 16 or 32 bits. All are 0 at first. A
// request is one verb on many positions; a site processes the positions in order and does nothing
// else in between, so a request to one site is atomic, up to kAtomicPositions: a site may cut a
// longer one. Claims are atomic one by one. Requests are sent first and received later: a caller
// that needs many sites sends to all of them before it waits for any.
//
// Filters with a window have pages at each place (Pages). A page is a site of its own, with a
// number, cells and an incarnation; it is empty when it is first used, and goes by itself once
// nobody asks to keep it. So what is out of the window is never cleared.
//
// A site object is one producer's connection and is used by one thread. Producers share the site
// behind it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice::cluster {

enum class Verb : std::uint8_t {
  test,          // answers: what the cells hold
  set,           // no answers
  test_and_set,  // answers: what the cells held before
  claim,         // positions are names of keys; answer: 1 if somebody held the claim already
  release,       // names that this producer claimed; answer: 1 if it held the claim until now
};

struct Request {
  Verb verb = Verb::test;
  std::span<const std::uint64_t> positions = {};
  // What set and test_and_set write, one per position. Empty: 1 each.
  std::span<const std::uint32_t> values = {};
  // Of a page: it is to stay for so long from now, if nobody says otherwise meanwhile. 0: as it was.
  std::chrono::milliseconds keep{0};
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
  // Bounds how long a server does nothing else: 1.6 ms where a cell takes it 0.4 µs.
  static constexpr std::size_t kAtomicPositions = 4096;

  virtual ~Site() = default;

  virtual std::uint64_t cells() const = 0;
  // Of each cell: 1, 16 or 32.
  virtual unsigned cell_bits() const = 0;

  // Sends a request and does not wait. What it points to must not change until the reply is
  // received. One request at a time: send, receive, send, receive.
  virtual void send(const Request& request) = 0;

  // Waits for the reply. answers[i] is about position i of the request, where the verb has answers
  // and the outcome is `answered`; otherwise they are left alone, and so are those beyond the
  // caller's. Never throws for a site that cannot be reached: that is an outcome.
  virtual Reply receive(std::span<std::uint32_t> answers) = 0;

  Reply ask(const Request& request, std::span<std::uint32_t> answers) {
    send(request);
    return receive(answers);
  }
  // For bits and claims, whose answers are 0 or 1.
  Reply ask(Verb verb, std::span<const std::uint64_t> positions, std::span<std::uint8_t> answers) {
    std::vector<std::uint32_t> numbers(answers.begin(), answers.end());
    const Reply reply = ask({verb, positions}, numbers);
    std::ranges::transform(numbers, answers.begin(),
                           [](std::uint32_t number) { return static_cast<std::uint8_t>(number); });
    return reply;
  }
};

// The pages at one place. Claims are of the place, whichever page they are sent to.
class Pages {
 public:
  virtual ~Pages() = default;

  // Of each page.
  virtual std::uint64_t cells() const = 0;
  virtual unsigned cell_bits() const = 0;
  // This producer's connection to the page of this number. The pages are independent: each may have
  // a request on its way.
  virtual std::unique_ptr<Site> open(std::int64_t number) = 0;
};

}  // namespace sluice::cluster
