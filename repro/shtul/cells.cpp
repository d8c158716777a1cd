#include "repro/shtul/cells.hpp"

#include <fmt/format.h>

#include "repro/papers.hpp"

namespace sluice::repro::shtul {
namespace {

const Published& published() {
  static const Published all = Published::parse(published_csv("shtul"));
  return all;
}

}  // namespace

double printed(const std::string& id) {
  return published()[id].printed;
}

Cells::Cells(Rows& rows, std::string table)
    : rows_(rows), name_(std::move(table)), table_{{"cell", "paper", "recomputed", "ours"}, {}} {}

void Cells::add(const std::string& cell, double ours) {
  const PublishedValue& value = published()[name_ + "." + cell];
  table_.lines.push_back({value.what, value.printed_text,
                          value.corrected ? fmt::format("{:.9g}", *value.corrected) : "",
                          fmt::format("{:.9g}", ours)});
  if (value.tolerance.allows(value.printed, ours)) {
    ++as_printed_;
    return;
  }
  ++(value.corrected && value.tolerance.allows(*value.corrected, ours) ? corrected_ : outside_);
  rows_.value(value.id, ours);
}

void Cells::finish() {
  std::string numbers = fmt::format("{} as printed", as_printed_);
  if (corrected_ > 0) numbers += fmt::format(", {} as recomputed", corrected_);
  if (outside_ > 0) numbers += fmt::format(", {} as neither", outside_);
  rows_.claim(name_ + ".cells", outside_ == 0, numbers);
}

}  // namespace sluice::repro::shtul
