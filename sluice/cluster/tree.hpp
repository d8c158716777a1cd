// Filters near producers: a tree of filters or windows, asked from the leaf upwards.
//
// Source   Koloniari et al. 2011, §6: sparse trees (first test all the way up, then set), dense
//          ones (test and set on the way up), top-down testing.
// Differs  A hit that top-down testing refutes does not end the climb: the paper stops there, and
//          lets duplicates through. stop_when_refuted selects the paper's behaviour. The root is
//          asked by test-and-set: producers that race for a key meet there, and one wins.
//          In a dense tree of windows, nothing is set on the way up. What a node above knows is set
//          below it afterwards, as of when that node has remembered it; as of now, the nodes below
//          would hold a key back for up to a window longer than the root. A node that cannot say
//          since when it knows a key leaves those below as they are.
// Cost     A hit near the leaf contacts few nodes. A key that is new contacts every node on its
//          path, all but the root of them twice. Dense trees of filters that never forget: once.
// Errors   Those of one filter of the root's kind over all keys: a sparse tree, a dense tree and
//          that filter give the same verdicts, as long as all nodes have the same parameters and one
//          producer's view sees all events. Several producers: each has a clock of its own, see Time.
//          Windows of filters that do not know the age of a key (apbf, apbbf) may differ in keys that
//          are in their slack. False positives of nodes that are no equal Bloom filters add up along
//          the path.
// Time     What time it is, and which events are late, is told by the events of this producer, as by
//          those of a window (window/clock.hpp). Nodes of this process are told; a server's window
//          knows the times of the keys that it was asked for. So an event of a producer whose clock
//          is behind the others' may meet windows that are ahead of it: it passes, and may not be
//          remembered. And it may meet some that are behind: it is held back only if its key was let
//          through less than a window, and slack, before the event.
//          A time that is not believed yet (max_ahead) makes its event distinct; it is remembered as
//          of now.
// Faults   A node below the root that does not answer is passed by: the next one decides, and loses
//          nothing. A root that does not answer counts as `rule` says. `distinct`: repeats pass,
//          those excepted that a node below the root knows. `duplicate`: all new events are lost
//          until it answers again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/base/verdict.hpp"
#include "sluice/cluster/node.hpp"
#include "sluice/window/clock.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cluster {

// Node 0 is the root; every other has its parent before it.
struct TreeShape {
  std::vector<unsigned> parents = {0};  // of the root: 0
  // A tree of `levels` levels, the root's included; each node above the last level has `children`
  // children.
  static TreeShape even(unsigned levels, unsigned children);

  std::size_t size() const noexcept { return parents.size(); }
  std::vector<unsigned> leaves() const;
};

class Tree {
 public:
  enum class Kind : std::uint8_t { sparse, dense };
  // What a key counts as if the root does not answer.
  enum class Rule : std::uint8_t { distinct, duplicate };
  struct Options {
    Kind kind = Kind::dense;
    // d: a hit on a level above this one (the root's is 0) is checked in the subtree below it, down
    // to level d. 0: no hit is checked. With several producers a checked hit may be refuted while
    // another producer has set the root and not yet its leaf: both let the key through.
    unsigned check_to = 0;
    bool stop_when_refuted = false;
    Rule rule = Rule::distinct;
    // Windows of time: nanoseconds, as of Window::Params.
    std::optional<std::uint64_t> max_ahead = {};
    // Measures how long nodes take; none: Level::nanoseconds stays 0.
    std::function<std::int64_t()> clock = {};
  };

  // What happened on a level.
  struct Level {
    std::uint64_t hits = 0;        // keys judged duplicates here
    std::uint64_t accesses = 0;    // nodes contacted on the way up and, to set, on the way back
    std::uint64_t checks = 0;      // nodes contacted by top-down testing
    std::uint64_t refuted = 0;     // hits that it did not believe
    std::uint64_t trips = 0;       // times that a node was waited for: keys of a batch share them
    std::uint64_t unanswered = 0;  // keys that a node said nothing about, or did not remember
    std::int64_t nanoseconds = 0;  // waited
  };

  // Events of one producer, in the order of their arrival.
  struct Batch {
    std::span<const Digest> digests = {};
    // When each happened, in ms since 1970: for windows of time; otherwise ignored, and may be empty.
    std::span<const std::int64_t> times_ms = {};
    // In place of times: when all of them arrive, by a clock that is always believed.
    std::optional<std::int64_t> now_ms = {};
    std::span<Verdict> verdicts = {};
    // Out, if not empty: events a window or more behind. They are neither judged nor remembered, and
    // their verdict is `distinct`.
    std::span<bool> late = {};
  };

  // A producer's view. All nodes have the same window, or none. A verdict is that of one filter if
  // they also have the same size and error. Throws BadParameters.
  Tree(TreeShape shape, const Options& options, std::vector<std::unique_ptr<Node>> nodes);
  // Of Bloom filters, all of the same bits and probes.
  Tree(TreeShape shape, const Options& options, std::vector<std::unique_ptr<Slices>> nodes);

  // Events of a producer at this leaf. They are judged as if they came one after the other. Throws
  // BadParameters, before any node is asked.
  void observe(unsigned leaf, const Batch& batch);
  void observe(unsigned leaf, std::span<const Digest> digests, std::span<Verdict> verdicts) {
    observe(leaf, {.digests = digests, .verdicts = verdicts});
  }
  Verdict observe(unsigned leaf, const Digest& digest);

  const TreeShape& shape() const noexcept { return shape_; }
  const Options& options() const noexcept { return options_; }
  const std::optional<WindowSpec>& window() const noexcept { return window_; }
  // The root's first.
  std::span<const Level> levels() const noexcept { return levels_; }
  unsigned level_of(unsigned node) const { return depths_[node]; }
  // Keys judged by the number of nodes passed on the way up: [0] at the leaf.
  std::span<const std::uint64_t> climbs() const noexcept { return climbs_; }
  // Keys that were judged by the rule.
  std::uint64_t ruled() const noexcept { return ruled_; }
  // Events that were late, and of windows of time the producer's clock.
  std::uint64_t late() const noexcept { return late_; }
  const EventClock& clock() const noexcept { return clock_; }
  Node& node(unsigned at) { return *nodes_[at]; }

 private:
  // Keys that share requests.
  static constexpr std::size_t kMostKeys = 4096;

  static constexpr std::size_t kNobody = ~std::size_t{0};

  // An event of the present batch, or an earlier one that is to be remembered at its own time.
  struct Event {
    Digest digest;
    std::size_t index = kNobody;  // in the batch
    Verdict verdict = Verdict::distinct;
    std::int64_t time_ms = 0, now_ms = 0;
    std::int64_t since_ms = Node::kUnknownSince;  // of a hit
    std::uint32_t steps = 0;                      // nodes passed until it was judged
    bool judged = true;                           // otherwise it is distinct, and only remembered
    bool known = false;                           // a node said that it is a duplicate
  };
  // Keys that one node is asked for, with their times if there are any.
  struct Keys {
    std::vector<Digest> digests;
    std::vector<std::int64_t> times_ms, nows_ms;
    std::vector<std::uint32_t> whose;  // indices into events_
    std::size_t size() const noexcept { return digests.size(); }
    void clear();
    void add(const Digest& digest, std::size_t event);
    void add(const Digest& digest, std::size_t event, std::int64_t time_ms, std::int64_t now_ms);
    void keep(std::size_t from, std::size_t to);
    void resize(std::size_t size);
    Node::Request request(FilterVerb verb) const { return {verb, digests, times_ms, nows_ms}; }
  };

  void check_nodes() const;
  bool sets_on_the_way_up() const noexcept;
  void check(unsigned leaf, const Batch& batch) const;
  void read(const Batch& batch);
  bool is_late(Nanoseconds time) const;
  bool has_said_now() const;
  Event& add(const Digest& digest, Nanoseconds time, std::size_t index);
  void judge(unsigned leaf, const Batch& batch);
  void climb(unsigned leaf);
  void take_answers(unsigned node, unsigned from, std::uint32_t steps);
  Verdict verdict_at_end(const Event& event, Answer answer, bool hit);
  void set(unsigned leaf);
  void choose_sets(std::uint32_t steps);
  void ask(unsigned node, const Node::Request& request, std::span<Answer> answers,
           std::span<std::int64_t> since_ms);
  bool confirmed(unsigned node, unsigned from, std::size_t key);
  Answer look(unsigned node, std::size_t key);

  TreeShape shape_;
  Options options_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<unsigned>> children_;
  std::vector<unsigned> depths_;
  // Nodes that did not take a key: what they do not know proves nothing.
  std::vector<bool> incomplete_;
  std::vector<Level> levels_;
  std::vector<std::uint64_t> climbs_;
  std::uint64_t ruled_ = 0, late_ = 0;

  // Of windows of time.
  std::optional<WindowSpec> window_;
  std::optional<ClockLimits> limits_;
  EventClock clock_;

  // Of the present batch.
  std::vector<Event> events_;
  Keys open_;  // keys that are not judged yet, or that are to be set
  std::vector<Answer> answers_;
  std::vector<std::int64_t> since_ms_;
};

}  // namespace sluice::cluster
