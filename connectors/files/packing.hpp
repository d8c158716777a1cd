// gzip and zstd, as streams: bytes in, bytes out. No I/O.
//
// A gzip file is a series of members, a zstd file a series of frames; here, both are called members.
// Each can be unpacked by itself, so a file may be cut after any of them and written on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

enum class Packing : std::uint8_t { none, gzip, zstd };
inline constexpr std::uint8_t kPackings = 3;

// By the first bytes. A zstd file may begin with a frame that is to be skipped.
Packing packing_of(std::string_view first_bytes) noexcept;
// Whether that depends on bytes that are still to come.
bool is_packing_start(std::string_view first_bytes) noexcept;
// By the end of its name: .gz and .zst.
Packing packing_of_name(std::string_view path) noexcept;

// "gzip", and the command that writes the contents to standard output.
std::string_view name_of(Packing packing) noexcept;
std::string_view command_of(Packing packing) noexcept;
// "member" or "frame".
std::string_view part_of(Packing packing) noexcept;

// The largest window that `zstd -d` accepts, and we do.
inline constexpr std::uint64_t kMostWindow = std::uint64_t{1} << 27;

// A header of a zstd frame has no more bytes.
inline constexpr std::size_t kZstdHeadBytes = 18;
// The window that a zstd frame with these first bytes asks for; 0 if they do not tell.
std::uint64_t zstd_window(std::string_view first_bytes) noexcept;

// What a packer and an unpacker take beside their windows and our buffers, at most.
inline constexpr std::uint64_t kGzipPackerBytes = std::uint64_t{1} << 19;
inline constexpr std::uint64_t kZstdPackerBytes = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kUnpackerBytes = std::uint64_t{1} << 19;

// Why unpacking cannot go on.
struct PackingFault {
  enum class Kind : std::uint8_t {
    damaged,     // `detail` says how
    garbage,     // after a member comes something that is none
    dictionary,  // a zstd frame that needs one
    window,      // a zstd frame that needs a larger window: `window` bytes, if that is known
  };
  Kind kind;
  std::string detail = {};
  std::uint64_t window = 0;
};

class Unpacker {
 public:
  // `most_window`: of a zstd frame, in bytes.
  static std::unique_ptr<Unpacker> make(Packing packing, std::uint64_t most_window = kMostWindow);
  virtual ~Unpacker() = default;

  struct Step {
    std::size_t used = 0;                    // bytes of the input
    std::size_t made = 0;                    // bytes of the output
    std::optional<PackingFault> fault = {};  // after these
  };
  // Unpacks until the input is used up or the output is full. If it was filled, more may follow
  // without further input. Throws NoMemory.
  virtual Step unpack(std::span<const char> in, std::span<char> out) = 0;

  // No member is begun: the input may end here.
  bool between() const noexcept { return between_; }
  // The one that is being read, or was read last, from 1.
  std::uint64_t member() const noexcept { return member_; }

 protected:
  bool between_ = true;
  std::uint64_t member_ = 0;
};

// What has been packed into a file so far, for those who continue it.
struct PackedSoFar {
  Packing packing = Packing::none;
  std::uint64_t contents = 0;  // bytes, before they were packed
  char last = '\n';            // of these
  friend bool operator==(const PackedSoFar&, const PackedSoFar&) = default;
};

class Packer {
 public:
  // With the default level of gzip(1), 6, or of zstd(1), 3. Throws NoMemory.
  static std::unique_ptr<Packer> make(Packing packing);
  virtual ~Packer() = default;

  enum class Until : std::uint8_t {
    taken,    // may keep bytes back
    flushed,  // all bytes so far can be unpacked from what was made
    ended,    // and the member is complete
  };
  // Packs `bytes` and calls `write` with what was made of them, in pieces. With `ended` and no bytes
  // it makes an empty member if none is begun.
  template <class Write>
  void pack(std::string_view bytes, Until until, const Write& write) {
    Input in{bytes.data(), bytes.size()};
    while (step(in, until)) write(std::string_view(out_.get(), made_));
    if (made_ > 0) write(std::string_view(out_.get(), made_));
  }

 protected:
  struct Input {
    const char* data;
    std::size_t size;
  };
  static constexpr std::size_t kOutBytes = std::size_t{1} << 17;

  Packer();
  // Fills out_ with made_ bytes, and moves `in` on. False: all is done that `until` asks for.
  virtual bool step(Input& in, Until until) = 0;

  std::unique_ptr<char[]> out_;
  std::size_t made_ = 0;
};

}  // namespace sluice
