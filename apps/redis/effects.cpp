#include "apps/redis/effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"
#include "sluice/window/growth.hpp"
#include "sluice/window/window.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t kTogether = 512;
constexpr std::size_t kTended = 64;  // expired claims that are dropped at once

// The bytes of an effect. Commands run one after another, so one buffer serves all; what a large command
// has made it grow to is given back.
class Bytes final : public Encoder {
 public:
  Bytes() { buffer().clear(); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() override {
    constexpr std::size_t kKept = 64 << 10;
    if (buffer().capacity() > kKept) std::vector<std::byte>().swap(buffer());
  }
  // Before anything changes: what has happened must be told, so there must be memory for that.
  static void reserve(const Host& host, std::size_t digests) {
    if (host.heard()) buffer().reserve(kFields + 16 * digests);
  }
  void bytes(std::span<const std::byte> data) override {
    buffer().insert(buffer().end(), data.begin(), data.end());
  }
  std::span<const std::byte> written() const { return buffer(); }

 private:
  // A little more than those of any effect without a text.
  static constexpr std::size_t kFields = 256 + Fates::kMostEncoded;
  static std::vector<std::byte>& buffer() {
    static std::vector<std::byte> bytes;
    return bytes;
  }
};

void encode(std::span<const Digest> digests, Encoder& to) {
  static_assert(sizeof(Digest) == 16);
  to.bytes(std::as_bytes(digests));
}

std::vector<Digest> decode_digests(BytesDecoder& from) {
  if (from.remaining() % sizeof(Digest) != 0)
    throw CorruptSnapshot("an effect ends within a digest");
  std::vector<Digest> digests(from.remaining() / sizeof(Digest));
  from.bytes(std::as_writable_bytes(std::span(digests)));
  return digests;
}

void encode(const Entry::When& when, Encoder& to) {
  to.u64(static_cast<std::uint64_t>(when.now_ms));
  to.u8(when.at_ms ? 1 : 0);
  if (when.at_ms) to.u64(static_cast<std::uint64_t>(*when.at_ms));
}

std::int64_t decode_ms(Decoder& from) {
  const auto ms = static_cast<std::int64_t>(from.u64());
  if (ms < -kFarthestMs || ms > kFarthestMs) throw CorruptSnapshot("an effect has no such time");
  return ms;
}

Entry::When decode_when(Decoder& from) {
  Entry::When when{.now_ms = decode_ms(from)};
  if (from.u8() != 0) when.at_ms = decode_ms(from);
  return when;
}

// The primary's time as the entry has taken it.
Entry::When settled(const Entry& entry, Entry::When when) {
  when.now_ms = entry.last_ms();
  return when;
}

// A time window lives on after each write. If somebody has set another expiry, or none, that counts from
// then on, also after the key has moved to another server.
void keep_alive(Place& place, Entry& entry, std::int64_t lease_ms) {
  const std::optional<std::int64_t> due = entry.due_ms(lease_ms);
  if (!due || entry.expires_ms() == Entry::kNotOurs) return;
  if (entry.expires_ms() != 0 && place.expiry_ms() != entry.expires_ms()) {
    entry.set_expires(Entry::kNotOurs);
    return;
  }
  if (*due == entry.expires_ms()) return;
  place.expire_at(*due);
  entry.set_expires(*due);
}

// After each change. `write` makes the effect: only where somebody is told.
template <class Write>
void tell(Host& host, Place& place, std::size_t key, const char* event, const Write& write,
          std::span<const std::size_t> sources = {}, std::int64_t lease_ms = 0) {
  keep_alive(place, *place.entry(), lease_ms);
  if (host.heard()) {
    Bytes effect;
    write(effect);
    host.replicate(key, effect.written(), sources);
  } else {
    host.count_change();
  }
  place.changed(event);
}

void tell_claimant(Host& host, Place& place, std::size_t key, EffectKind kind, const char* event,
                   const Claimant& claimant, std::span<const Digest> digests, const Fates& fates) {
  const auto write = [&](Encoder& effect) {
    effect.u8(static_cast<std::uint8_t>(kind));
    encode(settled(*place.entry(), claimant.when), effect);
    effect.u64(static_cast<std::uint64_t>(claimant.lease_ms));
    effect.u64(claimant.token.lo);
    effect.u64(claimant.token.hi);
    fates.encode(effect);
    encode(digests, effect);
  };
  tell(host, place, key, event, write, {}, claimant.lease_ms);
}

Entry::Claim claim_of(const Claimant& claimant, const Digest& item) {
  return {
      .item = item, .token = claimant.token, .when = claimant.when, .lease_ms = claimant.lease_ms};
}

// Expired claims make room; replicas drop the same.
void tend(Host& host, Place& place, std::size_t key, std::int64_t now_ms, Fates& fates) {
  Bytes::reserve(host, 0);
  place.entry()->tend(now_ms, kTended, fates);
  tell(host, place, key, "sluice.tend", [&](Encoder& effect) {
    effect.u8(static_cast<std::uint8_t>(EffectKind::tend));
    effect.u64(static_cast<std::uint64_t>(place.entry()->last_ms()));
    fates.encode(effect);
  });
}

// What a replica does with the last item of an effect, which its primary has refused. To try it may have changed the
// window all the same.
enum class Tried : std::uint8_t {
  none,          // there is no such item
  beyond_limit,  // it tries it: it has the same limit
  without_memory,  // it tries it, and forgets as often as its primary did, and then again as if it had no memory
};

bool has_limit(const Entry& entry) {
  return entry.window() != nullptr && entry.window()->params().memory;
}

bool all_pending(const Entry& entry, std::span<const Digest> digests, std::int64_t now_ms) {
  if (entry.claimed() == 0 || digests.empty()) return false;
  const Nanoseconds now = std::max(now_ms, entry.last_ms()) * 1'000'000;
  return std::ranges::all_of(
      digests, [&](const Digest& digest) { return entry.judge()->is_pending(digest, now); });
}

std::size_t judge(Host& host, Place& place, std::size_t key, std::span<const Digest> digests,
                  const Entry::When& when, std::span<Verdict> verdicts, Fates& fates) {
  Entry& entry = *place.entry();
  Counters& count = counters();
  // Nothing is remembered, so nothing moves, and nobody is told. Of what a primary tells, something has moved.
  if (!host.replayed() && all_pending(entry, digests, when.now_ms)) {
    std::ranges::fill(verdicts, Verdict::pending);
    count.judged += digests.size();
    return digests.size();
  }
  Bytes::reserve(host, digests.size());
  const std::uint64_t refusals = host.refusals();
  std::array<bool, kTogether> late;
  std::size_t judged = 0;
  bool over = false;
  std::uint64_t forgets = 0;  // for an item that was refused all the same
  // Once at least: time passes also if there was memory for none.
  do {
    const std::size_t size = std::min(digests.size() - judged, kTogether);
    std::size_t done = 0;
    while_memory_lasts([&] {
      done = entry.judge(digests.subspan(judged, size), when, verdicts.subspan(judged, size),
                         std::span(late).first(size), fates);
    });
    count.late += static_cast<std::uint64_t>(std::count(late.begin(), late.begin() + done, true));
    judged += done;
    if (done > 0) forgets = 0;
    if (done < size) {
      if (!entry.make_room()) break;
      ++forgets;
      continue;
    }
    // Replicas take what their primary took.
    over = !host.replayed() && judged < digests.size() && over_limit(host.config(), entry);
  } while (judged < digests.size() && !over);
  count.judged += judged;
  count.duplicates += count_duplicates(verdicts.first(judged));
  // Before its own MEMORY refused it, an item may have changed the window: replicas, which have the same
  // limit, try it, too. What the server's memory refused they would remember.
  Tried tried = Tried::none;
  if (judged < digests.size() && has_limit(entry) && !over)
    tried =
        host.refusals() - refusals == fates.spared() ? Tried::beyond_limit : Tried::without_memory;
  tell(host, place, key, "sluice.add", [&](Encoder& effect) {
    effect.u8(static_cast<std::uint8_t>(EffectKind::judge));
    encode(settled(entry, when), effect);
    fates.encode(effect);
    effect.u8(static_cast<std::uint8_t>(tried));
    effect.varint(tried == Tried::without_memory ? forgets : 0);
    encode(digests.first(judged + (tried == Tried::none ? 0 : 1)), effect);
  });
  return judged;
}

void forget(Host& host, Place& place, std::size_t key, std::span<const Digest> digests,
            std::int64_t now_ms, std::span<Verdict> verdicts, Fates& fates) {
  Bytes::reserve(host, digests.size());
  Entry& entry = *place.entry();
  entry.forget(digests, verdicts, now_ms, fates);
  tell(host, place, key, "sluice.forget", [&](Encoder& effect) {
    effect.u8(static_cast<std::uint8_t>(EffectKind::forget));
    effect.u64(static_cast<std::uint64_t>(entry.last_ms()));
    fates.encode(effect);
    encode(digests, effect);
  });
}

Claimed claim(Host& host, Place& place, std::size_t key, const Claimant& claimant,
              std::span<const Digest> digests, std::span<ClaimAnswer> answers, Fates& fates) {
  Bytes::reserve(host, digests.size());
  Entry& entry = *place.entry();
  const std::uint64_t most = std::min<std::uint64_t>(host.config().claims, Claims::kMostClaims);
  std::size_t done = 0;
  std::exception_ptr problem;
  try {
    for (; done < digests.size(); ++done) {
      fates.begin_item();
      answers[done] = entry.claim(claim_of(claimant, digests[done]),
                                  host.replayed() ? Claims::kMostClaims : most, fates);
    }
  } catch (const std::exception&) {
    problem = std::current_exception();
  }
  // One that there was no memory for may have dropped expired claims before: replicas try it, too.
  const std::size_t tried = done + (problem && fates.last_refused() ? 1 : 0);
  if (tried > 0)
    tell_claimant(host, place, key, EffectKind::claim, "sluice.claim", claimant,
                  digests.first(tried), fates);
  return {host.replayed() ? tried : done, problem};
}

void confirm(Host& host, Place& place, std::size_t key, const Claimant& claimant,
             std::span<const Digest> digests, std::span<ConfirmAnswer> answers, Fates& fates) {
  Bytes::reserve(host, digests.size());
  std::ranges::transform(digests, answers.begin(), [&](const Digest& digest) {
    return place.entry()->confirm(claim_of(claimant, digest), fates);
  });
  tell_claimant(host, place, key, EffectKind::confirm, "sluice.confirm", claimant, digests, fates);
}

}  // namespace

bool over_limit(const Config& config, const Entry& entry) noexcept {
  return config.key_memory != 0 && entry.bytes() > config.key_memory;
}

void restored(Entry& entry, std::optional<std::int64_t> expiry_ms) {
  if (!expiry_ms || !entry.by_time() || entry.expires_ms() <= Entry::kNotOurs) return;
  // A time that entries do not have is none of ours.
  entry.set_expires(*expiry_ms <= kFarthestMs ? *expiry_ms : Entry::kNotOurs);
}

Entry& make_entry(Host& host, Place& place, std::size_t key, const Making& making) {
  place.put(Entry::make(making, host.memory()));
  tell(host, place, key, "sluice.reserve", [&](Encoder& effect) {
    effect.u8(static_cast<std::uint8_t>(EffectKind::make));
    making.encode(effect);
  });
  return *place.entry();
}

std::size_t judge(Host& host, Place& place, std::size_t key, std::span<const Digest> digests,
                  const Entry::When& when, std::span<Verdict> verdicts) {
  Fates fates;
  return judge(host, place, key, digests, when, verdicts, fates);
}

void forget(Host& host, Place& place, std::size_t key, std::span<const Digest> digests,
            std::int64_t now_ms, std::span<Verdict> verdicts) {
  Fates fates;
  forget(host, place, key, digests, now_ms, verdicts, fates);
}

Claimed claim(Host& host, Place& place, std::size_t key, const Claimant& claimant,
              std::span<const Digest> digests, std::span<ClaimAnswer> answers) {
  if (place.entry()->claimed() + digests.size() > host.config().claims) {
    Fates fates;
    tend(host, place, key, claimant.when.now_ms, fates);
  }
  Fates fates;
  return claim(host, place, key, claimant, digests, answers, fates);
}

void confirm(Host& host, Place& place, std::size_t key, const Claimant& claimant,
             std::span<const Digest> digests, std::span<ConfirmAnswer> answers) {
  Fates fates;
  confirm(host, place, key, claimant, digests, answers, fates);
}

void release(Host& host, Place& place, std::size_t key, const Claimant& claimant,
             std::span<const Digest> digests, std::span<bool> answers) {
  Bytes::reserve(host, digests.size());
  std::ranges::transform(digests, answers.begin(), [&](const Digest& digest) {
    return place.entry()->release(claim_of(claimant, digest));
  });
  tell_claimant(host, place, key, EffectKind::release, "sluice.release", claimant, digests, {});
}

void merge(Host& host, Place& place, std::size_t key, std::span<const std::size_t> sources,
           std::int64_t now_ms) {
  Bytes::reserve(host, 0);
  // A copy is changed, so that a source that does not fit leaves nothing half merged.
  Entry::Pointer merged;
  for (const std::size_t source : sources) {
    const Entry* const from = host.open(source, Host::Access::read).entry();
    if (from == nullptr)
      throw BadParameters(
          fmt::format("MERGE: the source {} does not exist", quoted(host.word(source))));
    if (!merged) {
      const Entry* const own = place.entry();
      merged = (own != nullptr ? *own : *from).clone(host.memory());
      if (own == nullptr) {
        merged->set_expires(0);  // that is the other key's
        continue;
      }
    }
    if (from != place.entry()) merged->merge(*from, now_ms);
  }
  if (!merged) throw BadParameters("MERGE needs a source");
  merged->touch(now_ms);
  place.put(std::move(merged));
  const auto write = [now_ms](Encoder& effect) {
    effect.u8(static_cast<std::uint8_t>(EffectKind::merge));
    effect.u64(static_cast<std::uint64_t>(now_ms));
  };
  tell(host, place, key, "sluice.merge", write, sources);
}

namespace {

// Kind and time, before the chunk.
constexpr std::size_t kChunkFront = 9;

void write_front(std::span<std::byte> to, std::int64_t now_ms) {
  BytesEncoder front;
  front.u8(static_cast<std::uint8_t>(EffectKind::chunk));
  front.u64(static_cast<std::uint64_t>(now_ms));
  std::ranges::copy(front.written(), to.begin());
}

void drop(Host& host, Place& place, std::size_t key) {
  place.remove();
  if (host.heard()) {
    Bytes effect;
    effect.u8(static_cast<std::uint8_t>(EffectKind::drop));
    host.replicate(key, effect.written());
  } else {
    host.count_change();
  }
  place.changed("sluice.drop");
}

}  // namespace

void load_chunk(Host& host, Place& place, std::size_t key, const Chunk& chunk,
                std::int64_t now_ms) {
  Partial* const here = place.partial();
  if (here == nullptr && place.entry() != nullptr)
    throw BadParameters("the key exists already: DEL it first, or load into another name");
  // Taken before anything changes: what is not told must not have happened. Not in the buffer of the other
  // effects, which would keep a megabyte.
  std::vector<std::byte> effect(
      host.heard() ? kChunkFront + Chunk::kHeaderBytes + chunk.bytes.size() : 0);
  Partial::Pointer begun;
  if (chunk.offset == 0 || here == nullptr)
    begun = Partial::begin(chunk, host.memory());
  else
    here->add(chunk);
  if (!chunk.last()) {
    if (begun) place.put(std::move(begun));
  } else {
    Entry::Pointer entry;
    try {
      entry = (begun ? *begun : *here).finish(now_ms);
    } catch (...) {
      if (here != nullptr) drop(host, place, key);
      throw;
    }
    place.put(std::move(entry));
    if (chunk.expiry_ms != 0) place.expire_at(chunk.expiry_ms);
  }
  if (effect.empty()) {
    host.count_change();
  } else {
    write_front(effect, now_ms);
    chunk.write_header(std::span(effect).subspan<kChunkFront, Chunk::kHeaderBytes>());
    std::ranges::copy(chunk.bytes, effect.begin() + kChunkFront + Chunk::kHeaderBytes);
    host.replicate(key, effect);
  }
  place.changed("sluice.loadchunk");
}

void rewrite(const Entry& entry, const TakeEffect& take) {
  Cutter cutter(entry, 0, kChunkFront);
  for (auto effect = cutter.next(); !effect.empty(); effect = cutter.next()) {
    write_front(effect, entry.made_ms());
    take(effect);
  }
}

void rewrite(const Partial& partial, const TakeEffect& take) {
  partial.each_chunk(kChunkFront, [&](std::span<std::byte> effect) {
    write_front(effect, 0);
    take(effect);
  });
}

namespace {

void try_in_vain(Host& host, Entry& entry, const Digest& item, const Entry::When& when,
                 std::uint64_t forgets, Fates& fates) {
  const auto refused = [&] {
    Verdict verdict{};
    bool late = false;
    std::size_t judged = 1;
    while_memory_lasts([&] {
      judged = 0;
      judged = entry.judge({&item, 1}, when, {&verdict, 1}, {&late, 1}, fates);
    });
    return judged == 0;
  };
  bool same = true;
  for (; same && forgets > 0; --forgets) same = refused() && entry.make_room();
  host.refuse_memory(true);
  same = same && refused();
  host.refuse_memory(false);
  if (!same) throw NoMemory("there is memory for what the primary does not remember");
}

}  // namespace

void apply(Host& host, std::size_t key, std::span<const std::byte> effect,
           std::span<const std::size_t> sources) {
  BytesDecoder from(effect);
  const auto kind = EffectKind{from.u8()};
  Place& place = host.open(key, Host::Access::write);
  if (kind == EffectKind::make) {
    const Making making = Making::decode(from);
    if (from.remaining() != 0) throw CorruptSnapshot("an effect is too long");
    // The primary had no such key. If one is here, it has gone there without a word: a server that loads a file
    // drops what has expired meanwhile. Its expiry must go, too, or the new key would be hidden by it.
    place.remove();
    make_entry(host, place, key, making);
    return;
  }
  if (kind == EffectKind::chunk) {
    const std::int64_t now_ms = decode_ms(from);
    return load_chunk(host, place, key, Chunk::read(from.view(from.remaining())), now_ms);
  }
  if (kind == EffectKind::drop) {
    if (place.partial() != nullptr) drop(host, place, key);
    return;
  }
  if (kind == EffectKind::merge) return merge(host, place, key, sources, decode_ms(from));
  if (place.entry() == nullptr) throw BadParameters("an effect is for a key that does not exist");
  if (kind == EffectKind::tend) {
    const std::int64_t now_ms = decode_ms(from);
    Fates fates = Fates::decode(from);
    return tend(host, place, key, now_ms, fates);
  }
  if (kind == EffectKind::judge) {
    const Entry::When when = decode_when(from);
    Fates fates = Fates::decode(from);
    const std::uint8_t tried = from.u8();
    const std::uint64_t forgets = from.varint();
    const std::vector<Digest> all = decode_digests(from);
    if (tried > static_cast<std::uint8_t>(Tried::without_memory) ||
        (Tried{tried} != Tried::none && all.empty()))
      throw CorruptSnapshot("an effect has no such item");
    const bool in_vain = Tried{tried} == Tried::without_memory;
    const auto digests = std::span(all).first(all.size() - (in_vain ? 1 : 0));
    const std::size_t refused = Tried{tried} == Tried::beyond_limit ? 1 : 0;
    std::vector<Verdict> verdicts(digests.size());
    if (judge(host, place, key, digests, when, verdicts, fates) + refused < digests.size())
      throw NoMemory("there is no memory for what the primary remembers");
    if (in_vain) try_in_vain(host, *place.entry(), all.back(), when, forgets, fates);
    return;
  }
  if (kind == EffectKind::forget) {
    const std::int64_t now_ms = decode_ms(from);
    Fates fates = Fates::decode(from);
    const std::vector<Digest> digests = decode_digests(from);
    if (!place.entry()->can_forget()) throw BadParameters("this filter cannot take items back");
    std::vector<Verdict> verdicts(digests.size());
    return forget(host, place, key, digests, now_ms, verdicts, fates);
  }
  if (kind != EffectKind::claim && kind != EffectKind::confirm && kind != EffectKind::release)
    throw CorruptSnapshot("there is no such effect");
  Claimant claimant{.token = {}, .when = decode_when(from)};
  claimant.lease_ms = static_cast<std::int64_t>(from.u64());
  claimant.token.lo = from.u64();
  claimant.token.hi = from.u64();
  if (claimant.lease_ms < 0 || claimant.lease_ms > kLongestLeaseMs)
    throw CorruptSnapshot("an effect has no such lease");
  Fates fates = Fates::decode(from);
  const std::vector<Digest> digests = decode_digests(from);
  if (kind == EffectKind::claim) {
    std::vector<ClaimAnswer> answers(digests.size());
    if (claim(host, place, key, claimant, digests, answers, fates).answered < digests.size())
      throw NoMemory("there is no memory for what the primary has claimed");
  } else if (kind == EffectKind::confirm) {
    std::vector<ConfirmAnswer> answers(digests.size());
    confirm(host, place, key, claimant, digests, answers, fates);
  } else {
    const auto answers = std::make_unique<bool[]>(digests.size());
    release(host, place, key, claimant, digests, {answers.get(), digests.size()});
  }
}

Counters& counters() noexcept {
  static Counters all;
  return all;
}

}  // namespace sluice::server
