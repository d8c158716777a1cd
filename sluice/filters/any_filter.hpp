// Any filter behind one type. The virtual call is paid once a batch.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "sluice/filters/contract.hpp"

namespace sluice {

class AnyFilter {
 public:
  // Asked before Filter, which would ask whether an AnyFilter can be made of an AnyFilter.
  template <class F>
  requires(!std::same_as<F, AnyFilter>) && Filter<F> explicit AnyFilter(F filter)
      : holder_(std::make_unique<Holder<F>>(std::move(filter))) {}

  // verdicts[i] is the verdict on digests[i]; the spans are of equal length.
  void observe(std::span<const Digest> digests, std::span<Verdict> verdicts) {
    holder_->observe(digests, verdicts);
  }
  // verdicts[i] is `duplicate` where the key may be contained.
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const {
    holder_->may_contain(digests, verdicts);
  }
  void insert(std::span<const Digest> digests) { holder_->insert(digests); }
  void clear() noexcept { holder_->clear(); }

  FilterKind kind() const noexcept { return holder_->kind(); }
  std::uint16_t version() const noexcept { return holder_->version(); }
  FilterPromises promises() const noexcept { return holder_->promises(); }
  FilterStats stats() const { return holder_->stats(); }
  Settings settings() const { return holder_->settings(); }
  void encode_header(Encoder& to) const { holder_->encode_header(to); }
  void encode_payload(Encoder& to) const { holder_->encode_payload(to); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void observe(std::span<const Digest> digests, std::span<Verdict> verdicts) = 0;
    virtual void may_contain(std::span<const Digest> digests,
                             std::span<Verdict> verdicts) const = 0;
    virtual void insert(std::span<const Digest> digests) = 0;
    virtual void clear() noexcept = 0;
    virtual FilterKind kind() const noexcept = 0;
    virtual std::uint16_t version() const noexcept = 0;
    virtual FilterPromises promises() const noexcept = 0;
    virtual FilterStats stats() const = 0;
    virtual Settings settings() const = 0;
    virtual void encode_header(Encoder& to) const = 0;
    virtual void encode_payload(Encoder& to) const = 0;
  };

  template <class F>
  struct Holder final : Base {
    explicit Holder(F held) : filter(std::move(held)) {}
    void observe(std::span<const Digest> digests, std::span<Verdict> verdicts) override {
      filter.observe(digests, verdicts);
    }
    void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const override {
      filter.may_contain(digests, verdicts);
    }
    void insert(std::span<const Digest> digests) override { filter.insert(digests); }
    void clear() noexcept override { filter.clear(); }
    FilterKind kind() const noexcept override { return F::kKind; }
    std::uint16_t version() const noexcept override { return F::kVersion; }
    FilterPromises promises() const noexcept override { return F::kPromises; }
    FilterStats stats() const override { return filter.stats(); }
    Settings settings() const override { return filter.params().settings(); }
    void encode_header(Encoder& to) const override { filter.encode_header(to); }
    void encode_payload(Encoder& to) const override { filter.encode_payload(to); }
    F filter;
  };

  std::unique_ptr<Base> holder_;
};

}  // namespace sluice
