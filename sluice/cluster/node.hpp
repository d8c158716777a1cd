// A node of a tree: a filter or window near some producers, or the one that all of them share. A
// tree uses only these operations, so a node may be in this process or on servers, whole or sliced.
//
// A node object is one producer's view and is used by one thread. Producers share the filter behind
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/cluster/filter_site.hpp"
#include "sluice/cluster/filter_slices.hpp"
#include "sluice/cluster/local_filter.hpp"
#include "sluice/cluster/slices.hpp"
#include "sluice/window/spec.hpp"

namespace sluice::cluster {

class Node {
 public:
  using Request = FilterSite::Request;
  static constexpr std::int64_t kUnknownSince = FilterSite::kUnknownSince;

  virtual ~Node() = default;

  // Nothing: it never forgets, and takes no times.
  virtual std::optional<WindowSpec> window() const = 0;
  // Whether observe asks and remembers in one step, so that one of racing producers wins.
  virtual bool atomic() const = 0;

  // Whether a key is a hit while it does not answer. Such a node would hold back events that are new
  // for the node above, so it can only be the root.
  virtual bool holds_unanswered() const { return false; }

  // answers[i] is about key i, as of a FilterSite that answered; `none` for all keys if the node
  // does not answer. since_ms: see FilterSite; empty, or one per key.
  virtual void ask(const Request& request, std::span<Answer> answers,
                   std::span<std::int64_t> since_ms) = 0;

  // Why it did not answer last, or not for every key: for people. Empty if it always did.
  virtual std::string_view problem() const noexcept { return {}; }
};

// A filter or window of this process.
class LocalNode final : public Node {
 public:
  // Throws BadParameters for a window that repeats refresh: a repeat that a node near the producer
  // holds back would not refresh those above.
  explicit LocalNode(std::shared_ptr<LocalFilter> filter);

  std::optional<WindowSpec> window() const override { return window_; }
  bool atomic() const override { return true; }
  void ask(const Request& request, std::span<Answer> answers,
           std::span<std::int64_t> since_ms) override;

 private:
  std::shared_ptr<LocalFilter> filter_;
  std::optional<WindowSpec> window_;
};

// Filters or windows at one site or several. Their own rule is not used: the tree has one.
class FilterSlicesNode final : public Node {
 public:
  explicit FilterSlicesNode(std::unique_ptr<FilterSlices> slices) : slices_(std::move(slices)) {}

  std::optional<WindowSpec> window() const override { return slices_->options().window; }
  bool atomic() const override { return true; }
  void ask(const Request& request, std::span<Answer> answers,
           std::span<std::int64_t> since_ms) override {
    slices_->ask(request, answers, since_ms);
  }
  std::string_view problem() const noexcept override { return slices_->problem(); }

  FilterSlices& slices() noexcept { return *slices_; }

 private:
  std::unique_ptr<FilterSlices> slices_;
};

// A Bloom filter whose bits are at one site or several. Bits that cannot be read count as its own
// rule says, and not as the tree's.
class SlicesNode final : public Node {
 public:
  explicit SlicesNode(std::unique_ptr<Slices> slices) : slices_(std::move(slices)) {}

  std::optional<WindowSpec> window() const override { return std::nullopt; }
  bool atomic() const override { return slices_->options().test_and_set; }
  bool holds_unanswered() const override { return slices_->options().rule.least_live == 0; }
  void ask(const Request& request, std::span<Answer> answers,
           std::span<std::int64_t> since_ms) override;

  Slices& slices() noexcept { return *slices_; }

 private:
  bool sure() const;

  std::unique_ptr<Slices> slices_;
  std::vector<Verdict> verdicts_;
};

// A node that is further away than it is: `wait` is called before each request.
class DelayedNode final : public Node {
 public:
  DelayedNode(std::unique_ptr<Node> node, std::function<void()> wait)
      : node_(std::move(node)), wait_(std::move(wait)) {}

  std::optional<WindowSpec> window() const override { return node_->window(); }
  bool atomic() const override { return node_->atomic(); }
  bool holds_unanswered() const override { return node_->holds_unanswered(); }
  void ask(const Request& request, std::span<Answer> answers,
           std::span<std::int64_t> since_ms) override {
    wait_();
    node_->ask(request, answers, since_ms);
  }
  std::string_view problem() const noexcept override { return node_->problem(); }

 private:
  std::unique_ptr<Node> node_;
  std::function<void()> wait_;
};

// Nodes of Bloom filters, in the same order.
std::vector<std::unique_ptr<Node>> nodes_of(std::vector<std::unique_ptr<Slices>> slices);

}  // namespace sluice::cluster
