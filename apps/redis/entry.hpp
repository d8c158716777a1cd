// What a key of the server holds: a filter or window with its secret, and, if they are used, claims and an
// audit. It knows nothing of the server: times and memory come in.
//
// Most entries are small (one per user, with a few items), so claims and audits take memory only where they
// are used: a filter alone is asked directly, one with claims or an audit through a Judge.
//
// Time     `now_ms` never goes back: an earlier one counts as the latest so far.
// Bytes    An entry is encoded as a snapshot with a section "server" (docs/format.md): the same bytes for
//          RDB files, RESTORE, LOADCHUNK and files of the command line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "apps/redis/making.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/judge/judge.hpp"
#include "sluice/snapshot/pull.hpp"

namespace sluice::server {

// No time is later, or farther before 1970: the years 1823 and 2116, as of the library's clocks.
inline constexpr std::int64_t kFarthestMs = 4'611'686'018'427;
inline constexpr std::int64_t kLongestLeaseMs = std::int64_t{366} * 24 * 3600 * 1000;

class Entry {
 public:
  using Pointer = Owned<Entry>;

  // Throws BadParameters and NoMemory.
  static Pointer make(const Making& making, MemoryResource& memory);
  // Reads what Encoded wrote, or a snapshot of the command line. The bytes may come from anywhere. Throws
  // CorruptSnapshot, BadParameters and NoMemory. `now_ms`: when it was made, if the bytes do not say.
  static Pointer load(Decoder& from, MemoryResource& memory, std::int64_t now_ms);
  Pointer clone(MemoryResource& memory) const;

  Entry(const Hasher& hasher, AnyFilter filter);
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry();

  // When a batch comes, and the time of its events if they bring one. Of a key that goes by the times of its
  // events, what comes without one is asked about, or taken back, as of the latest event plus the time since
  // that was written: the stream may lag behind the clock of the server, which would expire all of it.
  struct When {
    std::int64_t now_ms = 0;
    std::optional<std::int64_t> at_ms = {};
  };
  // Judges and remembers, in order. Returns how many were judged; the rest are untouched, because there
  // is no memory. late[i]: the event is a window or more behind; it is let through unjudged.
  // No digests: only the time passes.
  std::size_t judge(std::span<const Digest> digests, const When& when, std::span<Verdict> verdicts,
                    std::span<bool> late, Fates& fates);
  // A window whose MEMORY has no room for the item at which judge() stopped forgets its oldest items. False: the
  // server had no memory, or nothing is left to forget.
  bool make_room();
  // Asks, and changes nothing. Pending items are `pending`.
  void ask(std::span<const Digest> digests, const When& when, std::span<Verdict> verdicts) const;
  // How long ago an item was remembered: in ms, of a count window in items (Window::age_of). Nothing: it is
  // not. Only if knows_ages().
  bool knows_ages() const noexcept { return window() != nullptr && window()->knows_ages(); }
  std::optional<std::uint64_t> age_of(const Digest& digest, std::int64_t now_ms) const;
  bool can_forget() const noexcept { return filter().can_forget(); }
  // Whether there was a trace of each: `duplicate`. Only if can_forget().
  void forget(std::span<const Digest> digests, std::span<Verdict> verdicts, std::int64_t now_ms,
              Fates& fates);
  // Throws BadParameters and NoMemory; nothing has changed then.
  void merge(const Entry& other, std::int64_t now_ms);

  // Something has changed now.
  void touch(std::int64_t now_ms) noexcept { advance(now_ms); }

  // Claims (sluice/judge/claims.hpp). Throws ClaimsFull if `most` items are pending, and NoMemory.
  struct Claim {
    Digest item;
    Claims::Token token;
    When when;
    std::int64_t lease_ms = 0;
  };
  // `fates`: what a primary tells its replicas about memory (sluice/judge/judge.hpp).
  ClaimAnswer claim(const Claim& claim, std::uint64_t most, Fates& fates);
  ConfirmAnswer confirm(const Claim& claim, Fates& fates);
  bool release(const Claim& claim);
  // The event time that this claimant has claimed an item with, if it holds the item and named one.
  std::optional<Nanoseconds> claimed_at(const Claim& claim) const;
  // Drops up to `most` claims whose leases have ended.
  void tend(std::int64_t now_ms, std::size_t most, Fates& fates);
  // How many items are claimed, leases that have ended and deliveries that wait for memory included; and how
  // many are pending, for which it looks at all of these.
  std::uint64_t claimed() const noexcept;
  std::uint64_t pending(std::int64_t now_ms) const noexcept;

  const Hasher& hasher() const noexcept { return hasher_; }
  const AnyFilter& filter() const noexcept { return judge_ ? judge_->filter() : filter_; }
  // Null unless there are claims or an audit.
  const Judge* judge() const noexcept { return judge_.get(); }
  const Window* window() const noexcept { return filter().window(); }
  bool by_time() const noexcept { return window() != nullptr && window()->params().spec.by_time(); }
  std::int64_t made_ms() const noexcept { return made_ms_; }
  // Of the last change.
  std::int64_t last_ms() const noexcept {
    return static_cast<std::int64_t>(last_and_lag_ >> kLagBits);
  }
  // All memory that it takes, itself included. Takes a time that does not depend on its size.
  std::uint64_t bytes() const noexcept;
  // How many blocks it has, roughly: whether it is worth freeing on another thread.
  std::uint64_t blocks() const noexcept;
  // Differs after each change, and from all other entries' as long as there are fewer than 2^32 changes in
  // between: to notice that an entry is no longer the one that was looked at before.
  std::uint32_t changes() const noexcept { return changes_; }

  // What BF.RESERVE was told, for BF.INFO: the EXPANSION, or that there is none. 0: it was not made by a BF
  // command.
  static constexpr std::uint16_t kNonScaling = 0xFFFF;
  std::uint16_t expansion() const noexcept { return expansion_; }

  // When a time window expires if nothing more is written: its length and slack after the last change or
  // the latest event, rounded up to a generation, and as much later as the events lag behind. While items
  // are pending, not before it was to expire until now, and if one was just claimed, not before its lease
  // ends. None: it does not expire.
  std::optional<std::int64_t> due_ms(std::int64_t lease_ms = 0) const;
  // The expiry that was set the last time: another one was set by a person, and counts. 0: none was set so
  // far. kNotOurs: a person decides.
  static constexpr std::int64_t kNotOurs = 1;
  std::int64_t expires_ms() const noexcept { return expires_ms_; }
  void set_expires(std::int64_t ms) noexcept { expires_ms_ = ms; }

 private:
  // Its block is of the filter's memory: that pointer need not be kept.
  struct DeleteJudge {
    void operator()(Judge* judge) const noexcept;
  };
  friend class Encoded;
  friend struct ResourceDelete<Entry>;

  AnyFilter& filter() noexcept { return judge_ ? judge_->filter() : filter_; }
  static std::uint32_t next_change() noexcept;
  Nanoseconds advance(std::int64_t now_ms) noexcept;
  void pass_time(Nanoseconds time, bool of_events);
  void note_lag(bool of_events) noexcept;
  bool by_events() const noexcept { return lag() != 0; }
  bool by_arrival() const noexcept;
  std::int64_t lag_ms() const noexcept;
  Nanoseconds present(std::int64_t now_ms) const noexcept;
  void need_judge(const JudgeOptions& options);
  bool has_left(const KeyMemory::When& delivered, Nanoseconds now) const;
  Judge& claiming();
  void check_room_for(const Claim& claim) const;
  Section section() const;
  void read(const Section& section);

  Hasher hasher_;
  std::uint16_t expansion_ = 0;
  std::uint32_t changes_ = next_change();
  std::int64_t made_ms_ = 0;
  // Two fields in one, because there are millions of entries: the time of the last change, in ms, above
  // kLagBits of the lag. That is 0 if the last items came without times of their own. Otherwise it is how far
  // the latest event was behind the server's clock then, plus 1: a number of kMantissaBits, shifted left by the
  // bits above them.
  static constexpr unsigned kLagBits = 20, kMantissaBits = 14;
  static constexpr std::uint64_t kLagMask = (1u << kLagBits) - 1;
  std::uint64_t last_and_lag_ = 0;
  std::uint64_t lag() const noexcept { return last_and_lag_ & kLagMask; }
  void set_lag(std::uint64_t lag) noexcept { last_and_lag_ = (last_and_lag_ & ~kLagMask) | lag; }
  void set_last(std::int64_t ms) noexcept {
    last_and_lag_ = static_cast<std::uint64_t>(ms) << kLagBits | lag();
  }
  std::int64_t expires_ms_ = 0;
  AnyFilter filter_;  // unless the judge has it
  std::unique_ptr<Judge, DeleteJudge> judge_;
};

// An entry as bytes, piece by piece. The entry must not change until this is done.
class Encoded {
 public:
  explicit Encoded(const Entry& entry);
  std::uint64_t size() const noexcept { return pull_.size(); }
  // Fills `out` with the next bytes, and returns how many; 0 at the end.
  std::size_t next(std::span<std::byte> out) { return pull_.next(out); }
  SnapshotPull& pull() noexcept { return pull_; }

 private:
  Sections sections_;
  SnapshotPull pull_;
};

}  // namespace sluice::server
