#include "connectors/files/packing.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "sluice/base/error.hpp"

namespace sluice {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kGzipMagic = "\x1f\x8b\x08"sv;
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd"sv;
// After a first byte from 0x50 to 0x5f: a frame that is to be skipped.
constexpr std::string_view kSkipMagic = "\x2a\x4d\x18"sv;

bool is_skip(std::string_view bytes) {
  return !bytes.empty() && (bytes[0] & 0xf0) == 0x50;
}

// With less than all of it.
bool begins(std::string_view magic, std::string_view bytes) {
  return bytes.size() < magic.size() && magic.starts_with(bytes);
}

// Of a frame's first bytes, as many as are known.
bool may_begin_frame(std::string_view bytes) {
  const auto agree = [](std::string_view part, std::string_view magic) {
    return magic.starts_with(part.substr(0, magic.size()));
  };
  return agree(bytes, kZstdMagic) || (is_skip(bytes) && agree(bytes.substr(1), kSkipMagic));
}

// windowBits of zlib: the largest window, and the format of gzip alone.
constexpr int kGzipWindow = 15 + 16;
constexpr int kGzipLevel = 6;
// zlib's own default.
constexpr int kGzipMemory = 8;
constexpr int kZstdLevel = 3;

[[noreturn]] void no_memory() {
  throw NoMemory("there is no memory to pack or unpack a file");
}

constexpr auto kMostAtOnce = std::numeric_limits<uInt>::max();

class GzipUnpacker final : public Unpacker {
 public:
  GzipUnpacker() {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) no_memory();
  }
  ~GzipUnpacker() override { inflateEnd(&stream_); }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  Step unpack(std::span<const char> in, std::span<char> out) override {
    Step step;
    for (;;) {
      const auto rest = in.subspan(step.used);
      const auto room = out.subspan(step.made);
      if (between_) {
        if (const std::size_t zeros = count_zeros(rest); zeros > 0) {
          padding_ = true;
          step.used += zeros;
          continue;
        }
        if (rest.empty() || room.empty()) return step;
        if (padding_ || (member_ > 0 && rest[0] != kGzipMagic[0])) {
          step.fault = {.kind = PackingFault::Kind::garbage};
          return step;
        }
        inflateReset(&stream_);
        between_ = false;
        ++member_;
      }
      if (room.empty()) return step;
      // zlib does not change what it reads, but does not say so.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream_.avail_in = static_cast<uInt>(std::min<std::size_t>(rest.size(), kMostAtOnce));
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(room.size(), kMostAtOnce));
      const int result = inflate(&stream_, Z_SYNC_FLUSH);
      step.used += static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_in) - rest.data());
      step.made +=
          static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_out) - room.data());
      if (result == Z_STREAM_END) {
        between_ = true;
        continue;
      }
      // Z_BUF_ERROR: nothing can be done without more input.
      if (result == Z_BUF_ERROR || (result == Z_OK && step.used == in.size())) return step;
      if (result == Z_OK) continue;
      if (result == Z_MEM_ERROR) no_memory();
      step.fault = {.kind = PackingFault::Kind::damaged,
                    .detail = stream_.msg != nullptr ? stream_.msg : "wrong data"};
      return step;
    }
  }

 private:
  // gzip(1) accepts zeros after the last member: tapes and block devices add them.
  std::size_t count_zeros(std::span<const char> in) const {
    if (member_ == 0) return 0;
    const auto end = std::ranges::find_if(in, [](char byte) { return byte != 0; });
    return static_cast<std::size_t>(end - in.begin());
  }

  z_stream stream_ = {};
  bool padding_ = false;  // zeros came
};

class ZstdUnpacker final : public Unpacker {
 public:
  explicit ZstdUnpacker(std::uint64_t most_window) : context_(ZSTD_createDCtx()) {
    if (!context_) no_memory();
    // The limit is a power of two.
    const int log = std::clamp(static_cast<int>(std::bit_width(most_window)) - 1, 10, 31);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, log);
  }

  Step unpack(std::span<const char> in, std::span<char> out) override {
    Step step;
    for (;;) {
      const auto rest = in.subspan(step.used);
      const auto room = out.subspan(step.made);
      if (between_) {
        if (rest.empty() || room.empty()) return step;
        between_ = false;
        ++member_;
        head_size_ = 0;
      }
      if (room.empty()) return step;
      if (!goes_on_as_frame(rest)) {
        step.fault = {.kind = PackingFault::Kind::garbage};
        return step;
      }
      ZSTD_inBuffer from{rest.data(), rest.size(), 0};
      ZSTD_outBuffer to{room.data(), room.size(), 0};
      const std::size_t result = ZSTD_decompressStream(context_.get(), &to, &from);
      if (ZSTD_isError(result)) {
        keep_head(rest);
        step.used += from.pos;
        step.made += to.pos;
        step.fault = fault_of(result);
        return step;
      }
      keep_head(rest.first(from.pos));
      step.used += from.pos;
      step.made += to.pos;
      if (result == 0)
        between_ = true;
      else if (step.used == in.size() || (from.pos == 0 && to.pos == 0))
        return step;
    }
  }

 private:
  // libzstd would read frames of its versions before 0.8, if their first bytes come in one piece,
  // with windows of any size.
  bool goes_on_as_frame(std::span<const char> bytes) const {
    if (head_size_ >= kZstdMagic.size()) return true;
    std::string first(head_.data(), head_size_);
    first.append(bytes.data(), std::min(bytes.size(), kZstdMagic.size() - head_size_));
    return may_begin_frame(first);
  }

  // For the message if the frame is refused.
  void keep_head(std::span<const char> bytes) {
    const std::size_t count = std::min(bytes.size(), head_.size() - head_size_);
    std::copy_n(bytes.begin(), count, head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
    head_size_ += count;
  }

  PackingFault fault_of(std::size_t result) const {
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_memory_allocation:
        no_memory();
      case ZSTD_error_frameParameter_windowTooLarge:
        return {.kind = PackingFault::Kind::window,
                .window = zstd_window({head_.data(), head_size_})};
      case ZSTD_error_dictionary_wrong:
        return {.kind = PackingFault::Kind::dictionary};
      default:
        break;
    }
    return {.kind = PackingFault::Kind::damaged, .detail = ZSTD_getErrorName(result)};
  }

  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  std::array<char, kZstdHeadBytes> head_ = {};  // the first bytes of the frame
  std::size_t head_size_ = 0;
};

class GzipPacker final : public Packer {
 public:
  GzipPacker() {
    if (deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, kGzipWindow, kGzipMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      no_memory();
  }
  ~GzipPacker() override { deflateEnd(&stream_); }
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;

 private:
  bool step(Input& in, Until until) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data));
    stream_.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size, kMostAtOnce));
    stream_.next_out = reinterpret_cast<Bytef*>(out_.get());
    stream_.avail_out = kOutBytes;
    const bool last = stream_.avail_in == in.size;
    const int flush = !last || until == Until::taken ? Z_NO_FLUSH
                      : until == Until::flushed      ? Z_SYNC_FLUSH
                                                     : Z_FINISH;
    // Z_BUF_ERROR: there was nothing to do. Nothing else can go wrong.
    const int result = deflate(&stream_, flush);
    const auto taken = static_cast<std::size_t>(reinterpret_cast<char*>(stream_.next_in) - in.data);
    in = {in.data + taken, in.size - taken};
    made_ = kOutBytes - stream_.avail_out;
    if (result == Z_STREAM_END) {
      deflateReset(&stream_);
      return false;
    }
    return in.size > 0 || stream_.avail_out == 0;
  }

  z_stream stream_ = {};
};

class ZstdPacker final : public Packer {
 public:
  ZstdPacker() : context_(ZSTD_createCCtx()) {
    if (!context_) no_memory();
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

 private:
  bool step(Input& in, Until until) override {
    ZSTD_inBuffer from{in.data, in.size, 0};
    ZSTD_outBuffer to{out_.get(), kOutBytes, 0};
    const std::size_t left = ZSTD_compressStream2(context_.get(), &to, &from,
                                                  until == Until::taken     ? ZSTD_e_continue
                                                  : until == Until::flushed ? ZSTD_e_flush
                                                                            : ZSTD_e_end);
    // Nothing but memory can be missing.
    if (ZSTD_isError(left)) no_memory();
    in = {in.data + from.pos, in.size - from.pos};
    made_ = to.pos;
    return in.size > 0 || (until != Until::taken && left > 0);
  }

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
};

}  // namespace

// RFC 8878, 3.1.1.1.
std::uint64_t zstd_window(std::string_view head) noexcept {
  const auto byte = [head](std::size_t at) { return static_cast<std::uint8_t>(head[at]); };
  if (head.size() < 6 || !head.starts_with(kZstdMagic)) return 0;
  const unsigned flags = byte(4);
  const bool single_segment = (flags & 0x20) != 0;
  if (!single_segment) {
    const std::uint64_t base = std::uint64_t{1} << (10 + (byte(5) >> 3));
    return base + base / 8 * (byte(5) & 7);
  }
  constexpr std::array<std::size_t, 4> kDictionaryBytes = {0, 1, 2, 4};
  const std::size_t begin = 5 + kDictionaryBytes[flags & 3];
  const std::size_t count = std::size_t{1} << (flags >> 6);
  if (head.size() < begin + count) return 0;
  std::uint64_t size = count == 2 ? 256 : 0;
  for (std::size_t i = 0; i < count; ++i) size += std::uint64_t{byte(begin + i)} << (8 * i);
  return size;
}

Packing packing_of(std::string_view first_bytes) noexcept {
  if (first_bytes.starts_with(kGzipMagic)) return Packing::gzip;
  const bool zstd = first_bytes.starts_with(kZstdMagic) ||
                    (is_skip(first_bytes) && first_bytes.substr(1).starts_with(kSkipMagic));
  return zstd ? Packing::zstd : Packing::none;
}

bool is_packing_start(std::string_view first_bytes) noexcept {
  return begins(kGzipMagic, first_bytes) || begins(kZstdMagic, first_bytes) ||
         first_bytes.empty() || (is_skip(first_bytes) && begins(kSkipMagic, first_bytes.substr(1)));
}

Packing packing_of_name(std::string_view path) noexcept {
  return path.ends_with(".gz")    ? Packing::gzip
         : path.ends_with(".zst") ? Packing::zstd
                                  : Packing::none;
}

std::string_view name_of(Packing packing) noexcept {
  return packing == Packing::gzip ? "gzip" : packing == Packing::zstd ? "zstd" : "none";
}

std::string_view command_of(Packing packing) noexcept {
  return packing == Packing::gzip ? "zcat" : "zstdcat";
}

std::string_view part_of(Packing packing) noexcept {
  return packing == Packing::gzip ? "member" : "frame";
}

std::unique_ptr<Unpacker> Unpacker::make(Packing packing, std::uint64_t most_window) {
  if (packing == Packing::gzip) return std::make_unique<GzipUnpacker>();
  return std::make_unique<ZstdUnpacker>(most_window);
}

Packer::Packer() : out_(std::make_unique_for_overwrite<char[]>(kOutBytes)) {}

std::unique_ptr<Packer> Packer::make(Packing packing) {
  if (packing == Packing::gzip) return std::make_unique<GzipPacker>();
  return std::make_unique<ZstdPacker>();
}

}  // namespace sluice
