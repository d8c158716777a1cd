#include "repro/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include "sluice/base/error.hpp"
#include "sluice/stream/csv.hpp"

namespace sluice::repro {
namespace {

constexpr std::size_t kColumns = 8;
constexpr const char* kChanceOrModel =
    "chance, if it disappears with another --seed or a larger --scale; otherwise our model is "
    "wrong";
constexpr const char* kChance = "four standard errors of so few events, or nearly";
constexpr const char* kOtherRun = "this run has other parameters or data than the paper's";

[[noreturn]] void refuse(std::size_t line, std::string_view what) {
  throw BadParameters(fmt::format("published values, line {}: {}", line, what));
}

std::vector<std::string> fields_of(std::string_view line, std::size_t number) {
  std::vector<CsvField> fields;
  if (!split_fields(line, ',', kColumns + 1, fields) || fields.size() != kColumns)
    refuse(number, fmt::format("'{}' has not {} columns", line, kColumns));
  std::vector<std::string> values(kColumns);
  for (std::size_t i = 0; i < kColumns; ++i) append_value(fields[i], values[i]);
  return values;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Tolerance tolerance_of(std::string_view text, std::size_t line) {
  if (text.empty()) return {};
  const bool relative = text.ends_with('%');
  const std::optional<double> amount = number_in(text.substr(0, text.size() - relative));
  if (!amount || *amount < 0) refuse(line, fmt::format("'{}' is no tolerance", text));
  return {*amount / (relative ? 100 : 1), relative};
}

void read_printed(PublishedValue& value, const std::string& text) {
  using Kind = PublishedValue::Kind;
  value.printed_text = text;
  if (text.empty()) return;
  const bool bound = text.front() == '<' || text.front() == '>';
  const std::optional<double> number = number_in(std::string_view(text).substr(bound));
  value.kind = !number               ? Kind::statement
               : !bound              ? Kind::value
               : text.front() == '<' ? Kind::below
                                     : Kind::above;
  value.printed = number.value_or(0);
}

// Four digits: more than any paper prints.
std::string shown(double value) {
  if (!std::isfinite(value)) return "none";
  if (std::abs(value) >= 1000 && std::abs(value) < 1e9) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string tolerance_text(const Tolerance& tolerance, double expected, const std::string& basis) {
  const std::string text = tolerance.relative ? fmt::format("± {:.3g} %", 100 * tolerance.amount)
                           : tolerance.amount == 0 ? "equal"
                                                   : fmt::format("± {:.2g}", tolerance.amount);
  return tolerance.share_of(expected) > kUsualTolerance && !basis.empty() ? text + ": " + basis
                                                                          : text;
}

std::string difference_of(double expected, double found) {
  if (expected == 0) return fmt::format("{:+.3g}", found - expected);
  return fmt::format("{:+.1f} %", 100 * (found / expected - 1));
}

bool meets(const PublishedValue& value, double ours) {
  switch (value.kind) {
    case PublishedValue::Kind::value:
      return value.tolerance.allows(value.printed, ours);
    case PublishedValue::Kind::below:
      return ours < value.printed;
    case PublishedValue::Kind::above:
      return ours > value.printed;
    default:
      return false;
  }
}

std::string paper_cell(const PublishedValue& value) {
  if (!value.corrected) return value.printed_text;
  if (value.printed_text.empty()) return fmt::format("({})", shown(*value.corrected));
  return fmt::format("{} ({})", value.printed_text, shown(*value.corrected));
}

}  // namespace

bool Tolerance::allows(double expected, double found) const {
  return std::abs(found - expected) <= amount * (relative ? std::abs(expected) : 1);
}

double Tolerance::share_of(double expected) const {
  return relative ? amount : amount / std::max(std::abs(expected), 1e-300);
}

Published Published::parse(std::string_view csv) {
  Published published;
  for (std::size_t number = 1; !csv.empty(); ++number) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    const std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (number == 1 || line.empty()) continue;  // the names of the columns
    const std::vector<std::string> fields = fields_of(line, number);
    PublishedValue value;
    value.id = fields[0], value.where = fields[1], value.what = fields[2];
    read_printed(value, fields[3]);
    if (!fields[4].empty() && !(value.corrected = number_in(fields[4])))
      refuse(number, fmt::format("'{}' is no number", fields[4]));
    value.tolerance = tolerance_of(fields[5], number);
    value.why = fields[6];
    value.basis = fields[7];
    if (value.tolerance.relative && value.tolerance.amount > kUsualTolerance && value.basis.empty())
      refuse(number, fmt::format("a tolerance of {} needs a reason", fields[5]));
    if (!published.index_.emplace(value.id, published.values_.size()).second)
      refuse(number, fmt::format("'{}' is there twice", value.id));
    published.values_.push_back(std::move(value));
  }
  return published;
}

const PublishedValue& Published::operator[](std::string_view id) const {
  const auto found = index_.find(id);
  if (found == index_.end())
    throw BadParameters(fmt::format("published.csv has no value '{}'", id));
  return values_[found->second];
}

std::string_view name_of(Row::Verdict verdict) {
  switch (verdict) {
    case Row::Verdict::within:
      return "yes";
    case Row::Verdict::corrected:
      return "yes, of the value in parentheses";
    case Row::Verdict::predicted:
      return "yes, of our model";
    case Row::Verdict::outside:
      return "no";
    case Row::Verdict::shown:
      return "not judged";
  }
  return "";
}

void Rows::add(Row row) {
  if (row.verdict == Row::Verdict::outside && !excuse_.empty())
    row.why = row.why.empty() ? excuse_ : excuse_ + "; otherwise: " + row.why;
  rows_.push_back(std::move(row));
}

void Rows::value(std::string_view id, double ours) {
  value(id, ours, (*published_)[id].why);
}

void Rows::value(std::string_view id, double ours, const std::string& why) {
  const PublishedValue& value = (*published_)[id];
  assert(value.kind != PublishedValue::Kind::statement && "a statement is a claim");
  Row row{value.id, value.where, value.what, paper_cell(value), shown(ours), "", {}, ""};
  const bool number = value.kind == PublishedValue::Kind::value;
  if (number || value.corrected)
    row.difference = difference_of(number ? value.printed : *value.corrected, ours);
  const bool as_printed = meets(value, ours);
  const bool as_corrected = value.corrected && value.tolerance.allows(*value.corrected, ours);
  row.verdict = as_printed     ? Row::Verdict::within
                : as_corrected ? Row::Verdict::corrected
                               : Row::Verdict::outside;
  if (!as_printed && (value.kind != PublishedValue::Kind::none || !as_corrected)) row.why = why;
  if (std::isfinite(ours)) row.number = ours;
  row.tolerance =
      number || value.corrected
          ? tolerance_text(value.tolerance, value.corrected.value_or(value.printed), value.basis)
          : "a bound";
  // The paper says nothing about other parameters or data.
  if (!judged_) row.verdict = Row::Verdict::shown, row.difference = "", row.why = kOtherRun;
  add(std::move(row));
}

void Rows::claim(std::string_view id, bool holds, const std::string& numbers) {
  const PublishedValue& value = (*published_)[id];
  Row row{value.id, value.where, value.what, value.printed_text, numbers, "", {}, ""};
  row.verdict = !judged_ ? Row::Verdict::shown
                : holds  ? Row::Verdict::within
                         : Row::Verdict::outside;
  if (!judged_)
    row.why = kOtherRun;
  else if (!holds)
    row.why = value.why;
  add(std::move(row));
}

void Rows::compare_with(const std::vector<const Rows*>& others) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.number) continue;
    double count = 1, sum = *row.number, squares = *row.number * *row.number;
    for (const Rows* other : others) {
      if (i >= other->rows_.size() || other->rows_[i].what != row.what || !other->rows_[i].number)
        continue;
      const double number = *other->rows_[i].number;
      ++count, sum += number, squares += number * number;
    }
    if (count < 2) continue;
    const double variance = (squares - sum * sum / count) / (count - 1);
    // Equal numbers: what is left is rounding.
    row.deviation = variance > 1e-18 * squares ? std::sqrt(variance) : 0;
  }
}

void Rows::remark(std::string_view id) {
  const PublishedValue& value = (*published_)[id];
  add({value.id, value.where, value.what, value.printed_text, "", "", Row::Verdict::shown,
       value.why});
}

void Rows::measured(std::string_view where, std::string_view what, double ours) {
  add({"", std::string(where), std::string(what), "", shown(ours), "", Row::Verdict::shown, ""});
}

void Rows::predicted(std::string_view where, std::string_view what, double model, double ours,
                     Tolerance tolerance, const std::string& why) {
  Row row{"", std::string(where), std::string(what), "", "", "", {}, ""};
  row.paper = fmt::format("[{}]", shown(model));
  row.ours = shown(ours);
  row.difference = difference_of(model, ours);
  if (std::isfinite(ours)) row.number = ours;
  row.tolerance = tolerance_text(tolerance, model, why.empty() ? kChance : why);
  const bool allowed = tolerance.allows(model, ours);
  row.verdict = allowed ? Row::Verdict::predicted : Row::Verdict::outside;
  if (!allowed) row.why = why.empty() ? kChanceOrModel : why;
  add(std::move(row));
}

}  // namespace sluice::repro
