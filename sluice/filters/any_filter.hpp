// Any filter behind one type. The virtual call is paid once per batch.
//
// The filter object lies in a block of its memory resource, its *holder*. bytes() counts that block
// too: it is all the memory that an AnyFilter takes from the resource.
//
// A window filter keeps its verbs (window_contract.hpp); `ages()` tells whether it is one, and only
// then may they be called.
#pragma once

#include <cassert>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/filters/copy.hpp"
#include "sluice/filters/window_contract.hpp"

namespace sluice {

class Window;

class AnyFilter {
 public:
  // Checked before the concept Filter, which would recurse: can an AnyFilter be made of an
  // AnyFilter?
  template <class F>
  requires(!std::same_as<F, AnyFilter>) && Filter<F> explicit AnyFilter(F filter)
      : holder_(make_holder(std::move(filter))) {}

  // verdicts[i] is the verdict on digests[i]. Throws BadParameters if the spans differ in length.
  // Returns how many keys were judged: see contract.hpp.
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
    check_length("verdicts", verdicts.size(), digests.size());
    return holder_->observe(digests, verdicts);
  }
  // Throws when there is no room for the key.
  Verdict observe(const Digest& digest) { return holder_->observe(digest); }
  // verdicts[i] is `duplicate` where the key may be contained.
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const {
    check_length("verdicts", verdicts.size(), digests.size());
    holder_->may_contain(digests, verdicts);
  }
  // The same for a window filter, as it will answer `later` generations from now; changes nothing.
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   unsigned later) const {
    check_length("verdicts", verdicts.size(), digests.size());
    holder_->may_contain(digests, verdicts, later);
  }
  std::size_t insert(std::span<const Digest> digests) { return holder_->insert(digests); }
  void clear() noexcept { holder_->clear(); }

  bool ages() const noexcept { return holder_->ages(); }
  unsigned generations() const noexcept { return holder_->generations(); }
  void rotate() noexcept { holder_->rotate(); }
  std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                    std::uint64_t& budget, Anchor anchor) noexcept {
    return holder_->admit(digests, verdicts, budget, anchor);
  }
  std::optional<Verdict> admit_aged(const Digest& digest, unsigned age, Anchor anchor) noexcept {
    return holder_->admit_aged(digest, age, anchor);
  }
  std::uint64_t live_keys() const noexcept { return holder_->live_keys(); }
  // Keys that can be written before it is full by count; the largest number if it has no such
  // limit.
  std::uint64_t room() const noexcept { return holder_->room(); }
  // As shares of the window: how far past it a key may be remembered, and the expected share of
  // such keys.
  double slack() const noexcept { return holder_->slack(); }
  double npws() const noexcept { return holder_->npws(); }

  // forget may only be called if can_forget().
  bool can_forget() const noexcept { return holder_->can_forget(); }
  bool forget(const Digest& digest) noexcept { return holder_->forget(digest); }
  bool can_merge() const noexcept { return holder_->can_merge(); }
  // Throws BadParameters when `other` has another kind or other parameters, or when this kind
  // cannot merge, and NoMemory; the filter is then unchanged. Both filters must have digests of the
  // same hasher. A filter cannot check this, and digests under two secrets have nothing in common
  // (Seen::merge checks it).
  void merge(const AnyFilter& other) { holder_->merge(*other.holder_); }
  // A copy with memory of its own. Throws NoMemory.
  AnyFilter clone(MemoryResource& memory) const { return holder_->clone(memory); }

  // The filter itself, if it is an F.
  template <Filter F>
  F* as() noexcept {
    auto* holder = dynamic_cast<Holder<F>*>(holder_.get());
    return holder == nullptr ? nullptr : &holder->filter;
  }
  template <Filter F>
  const F* as() const noexcept {
    return const_cast<AnyFilter*>(this)->as<F>();
  }

  // The window that this filter is, or null.
  Window* window() noexcept { return holder_->window(); }
  const Window* window() const noexcept { return holder_->window(); }

  // The memory for holding an F, beside what the filter itself owns.
  template <Filter F>
  static constexpr std::uint64_t holder_bytes() noexcept {
    return sizeof(Holder<F>);
  }

  FilterKind kind() const noexcept { return holder_->kind(); }
  std::uint16_t version() const noexcept { return holder_->version(); }
  FilterPromises promises() const noexcept { return holder_->promises(); }
  FilterStats stats() const { return holder_->stats(); }
  PlannedFor planned() const { return holder_->planned(); }
  std::uint64_t bytes() const noexcept { return holder_->bytes(); }
  MemoryResource& memory() const noexcept { return holder_->memory(); }
  Settings settings() const { return holder_->settings(); }
  void encode_header(Encoder& to) const { holder_->encode_header(to); }
  void encode_payload(Encoder& to) const { holder_->encode_payload(to); }

 private:
  struct Base {
    // Destroys it and gives its block back.
    virtual void release() noexcept = 0;
    virtual std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) = 0;
    virtual Verdict observe(const Digest& digest) = 0;
    virtual void may_contain(std::span<const Digest> digests,
                             std::span<Verdict> verdicts) const = 0;
    virtual void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                             unsigned later) const = 0;
    virtual std::size_t insert(std::span<const Digest> digests) = 0;
    virtual void clear() noexcept = 0;
    virtual bool ages() const noexcept = 0;
    virtual unsigned generations() const noexcept = 0;
    virtual void rotate() noexcept = 0;
    virtual std::size_t admit(std::span<const Digest> digests, std::span<Verdict> verdicts,
                              std::uint64_t& budget, Anchor anchor) noexcept = 0;
    virtual std::optional<Verdict> admit_aged(const Digest& digest, unsigned age,
                                              Anchor anchor) noexcept = 0;
    virtual std::uint64_t live_keys() const noexcept = 0;
    virtual std::uint64_t room() const noexcept = 0;
    virtual double slack() const noexcept = 0;
    virtual double npws() const noexcept = 0;
    virtual bool can_forget() const noexcept = 0;
    virtual bool forget(const Digest& digest) noexcept = 0;
    virtual bool can_merge() const noexcept = 0;
    virtual void merge(const Base& other) = 0;
    virtual AnyFilter clone(MemoryResource& memory) const = 0;
    virtual Window* window() noexcept = 0;
    virtual FilterKind kind() const noexcept = 0;
    virtual std::uint16_t version() const noexcept = 0;
    virtual FilterPromises promises() const noexcept = 0;
    virtual FilterStats stats() const = 0;
    virtual PlannedFor planned() const = 0;
    virtual std::uint64_t bytes() const noexcept = 0;
    virtual MemoryResource& memory() const noexcept = 0;
    virtual Settings settings() const = 0;
    virtual void encode_header(Encoder& to) const = 0;
    virtual void encode_payload(Encoder& to) const = 0;

   protected:
    ~Base() = default;
  };

  template <class F>
  struct Holder final : Base {
    explicit Holder(F held) : filter(std::move(held)) {}
    void release() noexcept override {
      MemoryResource& from = memory();
      this->~Holder();
      from.deallocate(this, sizeof(Holder), alignof(Holder));
    }
    std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts) override {
      return filter.observe(digests, verdicts);
    }
    Verdict observe(const Digest& digest) override { return filter.observe(digest); }
    void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const override {
      filter.may_contain(digests, verdicts);
    }
    void may_contain([[maybe_unused]] std::span<const Digest> digests,
                     [[maybe_unused]] std::span<Verdict> verdicts,
                     [[maybe_unused]] unsigned later) const override {
      if constexpr (WindowFilter<F>)
        filter.may_contain(digests, verdicts, later);
      else
        not_a_window(0);
    }
    std::size_t insert(std::span<const Digest> digests) override { return filter.insert(digests); }
    void clear() noexcept override { filter.clear(); }
    bool ages() const noexcept override { return WindowFilter<F>; }
    unsigned generations() const noexcept override {
      if constexpr (WindowFilter<F>) return filter.generations();
      return not_a_window(0u);
    }
    void rotate() noexcept override {
      if constexpr (WindowFilter<F>)
        filter.rotate();
      else
        not_a_window(0);
    }
    std::size_t admit([[maybe_unused]] std::span<const Digest> digests,
                      [[maybe_unused]] std::span<Verdict> verdicts,
                      [[maybe_unused]] std::uint64_t& budget,
                      [[maybe_unused]] Anchor anchor) noexcept override {
      if constexpr (WindowFilter<F>) return filter.admit(digests, verdicts, budget, anchor);
      return not_a_window(std::size_t{0});
    }
    std::optional<Verdict> admit_aged([[maybe_unused]] const Digest& digest,
                                      [[maybe_unused]] unsigned age,
                                      [[maybe_unused]] Anchor anchor) noexcept override {
      if constexpr (WindowFilter<F>) return filter.admit_aged(digest, age, anchor);
      return not_a_window(std::optional<Verdict>());
    }
    std::uint64_t live_keys() const noexcept override {
      if constexpr (WindowFilter<F>) return filter.live_keys();
      return not_a_window(std::uint64_t{0});
    }
    std::uint64_t room() const noexcept override {
      if constexpr (requires { filter.room(); })
        return filter.room();
      else
        return std::numeric_limits<std::uint64_t>::max();
    }
    // By default a filter forgets a key at most one generation late, and just before a generation
    // ends it still remembers all of the expired one.
    double slack() const noexcept override {
      if constexpr (requires { filter.slack(); })
        return filter.slack();
      else
        return generations() == 0 ? 0 : 1.0 / generations();
    }
    double npws() const noexcept override {
      if constexpr (requires { filter.npws(); })
        return filter.npws();
      else
        return slack();
    }
    bool can_forget() const noexcept override { return sluice::can_forget(filter); }
    bool forget([[maybe_unused]] const Digest& digest) noexcept override {
      if constexpr (ForgettingFilter<F>) return filter.forget(digest);
      assert(false && "this filter cannot take a key back");
      return false;
    }
    bool can_merge() const noexcept override { return sluice::can_merge(filter); }
    void merge([[maybe_unused]] const Base& other) override {
      if constexpr (MergingFilter<F>) {
        if (const auto* same = dynamic_cast<const Holder*>(&other))
          return filter.merge(same->filter);
        throw BadParameters(
            "filters of two kinds cannot be merged: both must have the same kind and parameters");
      }
      throw BadParameters(why_not_merge());
    }
    AnyFilter clone(MemoryResource& memory) const override {
      return AnyFilter(copy_of(filter, memory));
    }
    Window* window() noexcept override {
      if constexpr (std::same_as<F, Window>)
        return &filter;
      else
        return nullptr;
    }
    FilterKind kind() const noexcept override { return F::kKind; }
    std::uint16_t version() const noexcept override { return F::kVersion; }
    FilterPromises promises() const noexcept override { return promises_of(filter); }
    FilterStats stats() const override {
      FilterStats stats = filter.stats();
      stats.bytes = bytes();
      stats.over_target |= stats.target_fpr > 0 && stats.predicted_fpr > stats.target_fpr;
      return stats;
    }
    PlannedFor planned() const override {
      if constexpr (requires { filter.planned(); }) {
        return filter.planned();
      } else {
        const FilterStats stats = filter.stats();
        return {stats.capacity, stats.planned_fpr > 0 ? stats.planned_fpr : stats.target_fpr};
      }
    }
    std::uint64_t bytes() const noexcept override {
      return filter.bytes() + memory().usable(this, sizeof(Holder), alignof(Holder));
    }
    MemoryResource& memory() const noexcept override { return filter.memory(); }
    Settings settings() const override { return filter.params().settings(); }
    void encode_header(Encoder& to) const override { filter.encode_header(to); }
    void encode_payload(Encoder& to) const override { filter.encode_payload(to); }
    static const char* why_not_merge() noexcept {
      if constexpr (WindowFilter<F> || F::kKind == FilterKind::window)
        return "filters that age cannot be merged: each ends its generations at moments of its "
               "own, so that keys would leave the other's window too early or too late";
      else if constexpr (!F::kPromises.no_false_negatives)
        return "filters that forget by themselves cannot be merged: how fast they do is set by "
               "what one stream brings, and the union of two would be forgotten before its time";
      else
        return "filters of this kind cannot be merged";
    }
    F filter;
  };

  struct Release {
    void operator()(Base* holder) const noexcept { holder->release(); }
  };

  template <class F>
  static std::unique_ptr<Base, Release> make_holder(F filter) {
    MemoryResource& memory = filter.memory();
    void* const block = memory.allocate(sizeof(Holder<F>), alignof(Holder<F>));
    return std::unique_ptr<Base, Release>(new (block) Holder<F>(std::move(filter)));
  }

  template <class T>
  static T not_a_window(T nothing) noexcept {
    assert(false && "this filter does not age");
    return nothing;
  }

  std::unique_ptr<Base, Release> holder_;
};

}  // namespace sluice
