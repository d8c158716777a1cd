#include "sluice/cluster/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice::cluster {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 20;
constexpr unsigned kNone = ~0u;
constexpr Nanoseconds kNanosecondsPerMs = 1'000'000;

Nanoseconds floor_divide(Nanoseconds a, Nanoseconds b) {
  return a / b - (a % b < 0);
}

}  // namespace

TreeShape TreeShape::even(unsigned levels, unsigned children) {
  if (levels == 0 || children == 0)
    throw BadParameters("a tree of no levels or children: give at least 1 of each");
  TreeShape shape;
  std::size_t first = 0;  // of the level above
  for (unsigned level = 1; level < levels; ++level) {
    const std::size_t end = shape.parents.size();
    if ((end - first) * children > kMostNodes)
      throw BadParameters(
          fmt::format("a tree of more than {} nodes: give fewer levels or children", kMostNodes));
    for (std::size_t parent = first; parent < end; ++parent)
      shape.parents.insert(shape.parents.end(), children, static_cast<unsigned>(parent));
    first = end;
  }
  return shape;
}

std::vector<unsigned> TreeShape::leaves() const {
  std::vector<bool> inner(size());
  for (std::size_t node = 1; node < size(); ++node) inner[parents[node]] = true;
  std::vector<unsigned> leaves;
  for (unsigned node = 0; node < size(); ++node)
    if (!inner[node]) leaves.push_back(node);
  return leaves;
}

Tree::Tree(TreeShape shape, const Options& options, std::vector<std::unique_ptr<Slices>> nodes)
    : Tree(std::move(shape), options, nodes_of(std::move(nodes))) {}

Tree::Tree(TreeShape shape, const Options& options, std::vector<std::unique_ptr<Node>> nodes)
    : shape_(std::move(shape)),
      options_(options),
      nodes_(std::move(nodes)),
      children_(shape_.size()),
      depths_(shape_.size()),
      incomplete_(shape_.size()) {
  if (nodes_.size() != shape_.size() || nodes_.empty())
    throw BadParameters(fmt::format("tree: {} filters for {} nodes", nodes_.size(), shape_.size()));
  for (unsigned node = 1; node < shape_.size(); ++node) {
    const unsigned parent = shape_.parents[node];
    if (parent >= node) throw BadParameters("tree: a node's parent must come before it");
    children_[parent].push_back(node);
    depths_[node] = depths_[parent] + 1;
  }
  const unsigned deepest = *std::ranges::max_element(depths_);
  levels_.resize(deepest + 1);
  climbs_.resize(deepest + 1);
  window_ = nodes_[0]->window();
  check_nodes();
  if (window_ && window_->by_time()) limits_.emplace(window_->size, options_.max_ahead);
}

void Tree::check_nodes() const {
  if (window_ && !window_->by_time() && nodes_.size() > 1)
    throw BadParameters(
        "tree: windows of a count: a node near a producer would count only that producer's keys; "
        "give a window of time");
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node]->window() != window_)
      throw BadParameters(
          fmt::format("tree: node {} has another window than the root: give all the same", node));
    if (node > 0 && nodes_[node]->holds_unanswered())
      throw BadParameters(fmt::format(
          "tree: while node {} does not answer it would hold back all that is new; give "
          "`rule` duplicate to none but the root",
          node));
    if (sets_on_the_way_up() && !nodes_[node]->atomic())
      throw BadParameters("tree: the nodes of a dense tree are asked by test-and-set");
  }
}

// Not with windows, see Differs. And not if a key may be lost because the root does not answer: the
// nodes below would go on to hold it back.
bool Tree::sets_on_the_way_up() const noexcept {
  return options_.kind == Kind::dense && options_.rule == Rule::distinct && !window_;
}

void Tree::Keys::clear() {
  digests.clear();
  times_ms.clear();
  nows_ms.clear();
  whose.clear();
}

void Tree::Keys::add(const Digest& digest, std::size_t event) {
  digests.push_back(digest);
  whose.push_back(static_cast<std::uint32_t>(event));
}

void Tree::Keys::add(const Digest& digest, std::size_t event, std::int64_t time_ms,
                     std::int64_t now_ms) {
  add(digest, event);
  times_ms.push_back(time_ms);
  nows_ms.push_back(now_ms);
}

void Tree::Keys::keep(std::size_t from, std::size_t to) {
  digests[to] = digests[from];
  whose[to] = whose[from];
  if (times_ms.empty()) return;
  times_ms[to] = times_ms[from];
  nows_ms[to] = nows_ms[from];
}

void Tree::Keys::resize(std::size_t size) {
  digests.resize(size);
  whose.resize(size);
  if (times_ms.empty()) return;
  times_ms.resize(size);
  nows_ms.resize(size);
}

// One request, and what it says of its level.
void Tree::ask(unsigned node, const Node::Request& request, std::span<Answer> answers,
               std::span<std::int64_t> since_ms) {
  Level& level = levels_[depths_[node]];
  const std::int64_t start = options_.clock ? options_.clock() : 0;
  nodes_[node]->ask(request, answers, since_ms);
  if (options_.clock) level.nanoseconds += options_.clock() - start;
  ++level.trips;
  const auto silent = std::ranges::count_if(
      answers, [](Answer answer) { return answer == Answer::none || answer == Answer::refused; });
  level.unanswered += static_cast<std::uint64_t>(silent);
  if (silent > 0 && request.verb != FilterVerb::may_contain) incomplete_[node] = true;
}

Answer Tree::look(unsigned node, std::size_t key) {
  const auto one = [&](const auto& all) {
    return std::span(all).subspan(all.empty() ? 0 : key, all.empty() ? 0 : 1);
  };
  Answer answer = Answer::none;
  ask(node, {FilterVerb::may_contain, one(open_.digests), one(open_.times_ms), one(open_.nows_ms)},
      {&answer, 1}, {});
  return answer;
}

// Whether a hit at `node` is believed: some path below it must hit down to the level of the check.
// The child `from` is left out: the key came from there and was not found. A leaf has nothing below
// it. A node that does not answer, or has missed keys, proves nothing.
bool Tree::confirmed(unsigned node, unsigned from, std::size_t key) {
  if (depths_[node] >= options_.check_to || children_[node].empty()) return true;
  if (from != kNone && incomplete_[from]) return true;
  for (const unsigned child : children_[node]) {
    if (child == from) continue;
    ++levels_[depths_[child]].checks;
    const Answer answer = look(child, key);
    if (answer == Answer::distinct && !incomplete_[child]) continue;
    if (answer != Answer::duplicate || confirmed(child, kNone, key)) return true;
  }
  return false;
}

void Tree::check(unsigned leaf, const Batch& batch) const {
  const std::size_t size = batch.digests.size();
  if (leaf >= shape_.size() || !children_[leaf].empty())
    throw BadParameters(fmt::format("tree: node {} is no leaf", leaf));
  check_length("verdicts", batch.verdicts.size(), size);
  if (!batch.late.empty()) check_length("late", batch.late.size(), size);
  if (!limits_) return;
  if (!batch.now_ms) check_length("times_ms", batch.times_ms.size(), size);
  const auto times =
      batch.now_ms ? std::span<const std::int64_t>(&*batch.now_ms, 1) : batch.times_ms;
  for (const std::int64_t time : times)
    if (time < -FilterSlices::kFarthestMs || time > FilterSlices::kFarthestMs)
      throw BadParameters(fmt::format(
          "tree: a time of {} is more than 146 years from 1970: give ms since 1970", time));
}

void Tree::observe(unsigned leaf, const Batch& batch) {
  check(leaf, batch);
  // What a check finds depends on what the keys before have set.
  const std::size_t together = options_.check_to > 0 ? 1 : kMostKeys;
  const auto part = [](auto all, std::size_t at, std::size_t count) {
    return all.empty() ? all : all.subspan(at, count);
  };
  for (std::size_t at = 0; at < batch.digests.size(); at += together) {
    const std::size_t count = std::min(together, batch.digests.size() - at);
    judge(leaf, {.digests = batch.digests.subspan(at, count),
                 .times_ms = part(batch.times_ms, at, count),
                 .now_ms = batch.now_ms,
                 .verdicts = batch.verdicts.subspan(at, count),
                 .late = part(batch.late, at, count)});
  }
}

Verdict Tree::observe(unsigned leaf, const Digest& digest) {
  Verdict verdict;
  observe(leaf, {&digest, 1}, {&verdict, 1});
  return verdict;
}

void Tree::judge(unsigned leaf, const Batch& batch) {
  read(batch);
  climb(leaf);
  for (const Event& event : events_)
    if (event.index != kNobody) batch.verdicts[event.index] = event.verdict;
  if (!sets_on_the_way_up()) set(leaf);
}

bool Tree::is_late(Nanoseconds time) const {
  if (clock_.is_late(time, *limits_)) return true;
  // Nothing is left of the hour or day before this one.
  const auto size = static_cast<Nanoseconds>(window_->size);
  return window_->kind == WindowSpec::Kind::landmark &&
         floor_divide(time, size) < floor_divide(clock_.now(), size);
}

// By more than one event: the first alone may be wrong, and other producers' windows need not follow.
bool Tree::has_said_now() const {
  EventClock clock = clock_;
  return clock.leap(clock.now(), *limits_);
}

Tree::Event& Tree::add(const Digest& digest, Nanoseconds time, std::size_t index) {
  Event event{.digest = digest, .index = index};
  if (limits_) {
    event.time_ms = time / kNanosecondsPerMs;
    event.now_ms = has_said_now() ? clock_.now() / kNanosecondsPerMs : FilterSite::kNotSaid;
    open_.add(digest, events_.size(), event.time_ms, event.now_ms);
  } else {
    open_.add(digest, events_.size());
  }
  return events_.emplace_back(event);
}

// What the producer's clock makes of the times.
void Tree::read(const Batch& batch) {
  events_.clear();
  open_.clear();
  if (limits_ && batch.now_ms) clock_.set(*batch.now_ms * kNanosecondsPerMs, *limits_);
  for (std::size_t i = 0; i < batch.digests.size(); ++i) {
    const Digest& digest = batch.digests[i];
    if (!batch.late.empty()) batch.late[i] = false;
    if (!limits_ || batch.now_ms) {
      add(digest, clock_.now(), i);
      continue;
    }
    Nanoseconds time = batch.times_ms[i] * kNanosecondsPerMs;
    const EventClock::Reading reading = clock_.read(digest, time, *limits_);
    // The event that had claimed this time happened when it said.
    if (const auto claimant = clock_.claimant(); reading == EventClock::Reading::agreed &&
                                                 claimant &&
                                                 !is_late(std::min(clock_.claimed(), clock_.now())))
      add(*claimant, std::min(clock_.claimed(), clock_.now()), kNobody).judged = false;
    if (reading == EventClock::Reading::agreed) clock_.settle();
    if (is_late(time)) {
      if (!batch.late.empty()) batch.late[i] = true;
      batch.verdicts[i] = Verdict::distinct;
      ++late_;
      continue;
    }
    // One that is not believed is a window or more from every key by its own account: held back it
    // could be lost.
    add(digest, time, i).judged = reading != EventClock::Reading::disbelieved;
  }
}

void Tree::climb(unsigned leaf) {
  unsigned from = kNone;
  const bool wants_since = options_.kind == Kind::dense && limits_;
  for (std::uint32_t steps = 0; open_.size() > 0; ++steps) {
    const unsigned node = from == kNone ? leaf : shape_.parents[from];
    answers_.assign(open_.size(), Answer::none);
    since_ms_.assign(wants_since && steps > 0 ? open_.size() : 0, Node::kUnknownSince);
    const bool sets = node == 0 || sets_on_the_way_up();
    ask(node, open_.request(sets ? FilterVerb::observe : FilterVerb::may_contain), answers_,
        since_ms_);
    levels_[depths_[node]].accesses += open_.size();
    take_answers(node, from, steps);
    if (node == 0) break;
    from = node;
  }
}

// Of a key that is judged by its last node.
Verdict Tree::verdict_at_end(const Event& event, Answer answer, bool hit) {
  if (!event.judged) return Verdict::distinct;
  if (answer == Answer::duplicate || answer == Answer::distinct)
    return hit ? Verdict::duplicate : Verdict::distinct;
  ++ruled_;
  return options_.rule == Rule::duplicate ? Verdict::duplicate : Verdict::distinct;
}

void Tree::take_answers(unsigned node, unsigned from, std::uint32_t steps) {
  Level& level = levels_[depths_[node]];
  std::size_t kept = 0;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    Event& event = events_[open_.whose[i]];
    bool hit = answers_[i] == Answer::duplicate && event.judged;
    bool stop = node == 0 || hit;
    if (hit && !confirmed(node, from, i)) {
      ++level.refuted;
      hit = false;
      stop = node == 0 || options_.stop_when_refuted;
    }
    level.hits += hit;
    if (!stop) {
      open_.keep(i, kept++);
      continue;
    }
    event.steps = steps;
    event.known = hit;
    if (hit && !since_ms_.empty()) event.since_ms = since_ms_[i];
    event.verdict = verdict_at_end(event, answers_[i], hit);
    climbs_[steps] += event.index != kNobody;
  }
  open_.resize(kept);
}

// What is set on the node that so many were passed before.
void Tree::choose_sets(std::uint32_t steps) {
  open_.clear();
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    std::int64_t time_ms = event.time_ms;
    if (event.verdict == Verdict::duplicate) {
      // In a dense tree, what is known above.
      if (options_.kind != Kind::dense || !event.known || event.steps <= steps) continue;
      // Every key leaves a landmark window at the same moment.
      const bool sliding = window_ && window_->kind == WindowSpec::Kind::time;
      if (sliding && event.since_ms == Node::kUnknownSince) continue;
      if (sliding) time_ms = event.since_ms;
    }
    if (limits_)
      open_.add(event.digest, i, time_ms, events_.back().now_ms);
    else
      open_.add(event.digest, i);
  }
}

// The way back down. The root has new keys already, unless they were refuted or never got there.
void Tree::set(unsigned leaf) {
  std::uint32_t steps = 0;
  for (unsigned node = leaf;; node = shape_.parents[node], ++steps) {
    choose_sets(steps);
    const bool sets = node != 0 || options_.stop_when_refuted;
    if (open_.size() > 0 && (sets || !nodes_[node]->atomic()))
      levels_[depths_[node]].accesses += open_.size();
    if (open_.size() > 0 && sets) {
      answers_.assign(open_.size(), Answer::none);
      ask(node, open_.request(FilterVerb::insert), answers_, {});
    }
    if (node == 0) break;
  }
}

}  // namespace sluice::cluster
