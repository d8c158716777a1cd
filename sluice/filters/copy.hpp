// A copy of a filter, with its own memory. Tables are copied directly, without a buffer in between.
#pragma once

#include <algorithm>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/stretch.hpp"
#include "sluice/filters/contract.hpp"

namespace sluice {

// A Decoder that reads the payload of a filter. Small reads come out of a buffer, because each
// stretch costs one pass over the filter's tables.
template <class F>
class PayloadDecoder final : public Decoder {
 public:
  // The filter must outlive this and must not change.
  explicit PayloadDecoder(const F& filter) : filter_(filter) {
    CountingEncoder count;
    filter.encode_payload(count);
    size_ = count.count();
  }

  void bytes(std::span<std::byte> out) override {
    if (out.size() > remaining()) throw CorruptSnapshot("a filter reads more than it writes");
    while (!out.empty()) {
      std::size_t taken = std::min(out.size(), buffer_.size() - buffered_at_);
      if (taken != 0) {
        std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(buffered_at_), taken,
                    out.begin());
        buffered_at_ += taken;
      } else if (out.size() >= kBuffer) {
        taken = out.size();
        make(out);
      } else {
        buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBuffer, size_ - at_)));
        buffered_at_ = 0;
        make(buffer_);
        continue;
      }
      out = out.subspan(taken);
    }
  }

  std::uint64_t remaining() const override { return size_ - at_ + buffer_.size() - buffered_at_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{64} << 10;

  void make(std::span<std::byte> out) {
    StretchEncoder to(at_, out);
    filter_.encode_payload(to);
    at_ += out.size();
  }

  const F& filter_;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;  // of the next byte that is not in the buffer
  std::vector<std::byte> buffer_;
  std::size_t buffered_at_ = 0;
};

// The copy has exactly what a snapshot would restore. Throws NoMemory.
template <class F>
F copy_of(const F& filter, MemoryResource& memory) {
  BytesEncoder fields;
  filter.encode_header(fields);
  BytesDecoder header(fields.written());
  PayloadDecoder payload(filter);
  return F::decode(header, payload, memory);
}

}  // namespace sluice
