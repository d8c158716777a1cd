// A judge as bytes, and back: filter, claims and audit in one record.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/judge/judge.hpp"

namespace sluice {
namespace {

constexpr std::string_view kClaims = "claims";
constexpr std::string_view kAudit = "audit";

template <class Part>
Section section_of(std::string_view name, bool must_understand, const Part& part) {
  BytesEncoder to;
  part.encode(to);
  return {std::string(name), must_understand, to.take()};
}

}  // namespace

bool Judge::understands(std::string_view section) noexcept {
  return section == kClaims || section == kAudit;
}

JudgeOptions Judge::options_for(const Sections& sections) {
  JudgeOptions options;
  for (const Section& section : sections) {
    if (section.name == kClaims) options.claims = Claims::kMostClaims;
    if (section.name == kAudit) options.audit.emplace();
  }
  return options;
}

// Pending keys must not be lost. A reader without an audit may do without it.
Sections Judge::sections() const {
  Sections sections;
  if (claims_ && claims_->size() > 0) sections.push_back(section_of(kClaims, true, *claims_));
  if (audit_) sections.push_back(section_of(kAudit, false, *audit_));
  return sections;
}

std::uint64_t Judge::save(Encoder& to, const Labels& labels, const Sections& more) const {
  Sections all = sections();
  for (const Section& section : more) {
    if (understands(section.name))
      throw BadParameters(
          fmt::format("section '{}' is the judge's own: give yours another name", section.name));
    all.push_back(section);
  }
  return write_snapshot(hasher_, filter_, labels, to, all);
}

void Judge::resume(const Section& section) {
  BytesDecoder from(section.bytes);
  if (section.name == kClaims) {
    const std::uint64_t most = claims_ ? claims_->most() : 1;
    claims_.reset();
    claims_.emplace(Claims::decode(from, most, filter_.memory()));
  } else if (audit_) {
    audit_->decode(from);
  }
}

Judge::Loaded Judge::load(Decoder& from, const JudgeOptions& options, MemoryResource& memory,
                          const Understands& knows) {
  Snapshot snapshot = read_snapshot(
      from, memory, [&](std::string_view name) { return understands(name) || knows(name); });
  Loaded loaded{std::make_unique<Judge>(snapshot.hasher, std::move(snapshot.filter), options),
                std::move(snapshot.labels),
                {},
                snapshot.identity};
  for (Section& section : snapshot.sections) {
    if (understands(section.name))
      loaded.judge->resume(section);
    else
      loaded.sections.push_back(std::move(section));
  }
  return loaded;
}

}  // namespace sluice
