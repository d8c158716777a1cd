// The summary page: docs/reproduction.md is what a run of all papers writes.
#include <fmt/format.h>

#include "repro/run.hpp"

namespace sluice::repro {
namespace {

constexpr std::string_view kHead = R"(# The papers, reproduced

Written by `sluice repro`, which reruns each table and figure of the papers with this code. Values in
parentheses are not printed in the paper, or are misprinted there; they follow from its own formulas or
text, as the reason or the notes on that paper explain. Values in brackets are predictions of our models
(`sluice model`) where the paper has no number. A row that is not within its tolerance says why.

Tolerances: a number that can be computed must agree in every digit that is printed. A measured one may
differ by up to 10 %, less where many events were measured; a wider tolerance states its reason, which is
that few events were measured, that the paper prints one digit or only draws a curve, or that its data are
not available. The standard error is that of our number: how much it varies between runs with other seeds
(`--repeats`), 0 if it does not depend on chance.

)";

// Text as a cell of a table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string table_of(const std::vector<const Row*>& rows) {
  std::string text =
      "| | | paper | ours | standard error | difference | tolerance | within? | why not |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Row* row : rows)
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell(row->where),
                        cell(row->what), cell(row->paper), cell(row->ours),
                        row->deviation ? fmt::format("{:.2g}", *row->deviation) : "",
                        cell(row->difference), cell(row->tolerance), name_of(row->verdict),
                        cell(row->why));
  return text + "\n";
}

bool is_claim(const Row& row) {
  return row.id.starts_with("claim.");
}

std::string parameters_of(const Task& task) {
  std::string text;
  for (const Parameter& parameter : task.settings.parameters)
    text +=
        fmt::format("{}{} {:.6g}", text.empty() ? "" : ", ", parameter.name, parameter.standard);
  if (task.settings.scale != 1)
    text += fmt::format("{}scale {:.6g}", text.empty() ? "" : ", ", task.settings.scale);
  if (!task.settings.input.empty()) text.append(text.empty() ? "" : ", ").append("own input");
  return text.empty() ? "" : " (" + text + ")";
}

std::string experiment_of(const Done& done, bool figures) {
  const Experiment& experiment = *done.task->experiment;
  std::string text = fmt::format("### {}: {}\n\n", experiment.where, experiment.title);
  const std::string files = done.task->paper->name + "/" + experiment.name;
  text += fmt::format("`sluice repro {} --only {}`{}", done.task->paper->name, experiment.name,
                      parameters_of(*done.task));
  if (figures && !done.result.figure.panels.empty())
    text += fmt::format("\n\n![{}]({}.svg)", experiment.title, files);
  text += "\n\n";
  std::vector<const Row*> rows;
  for (const Row& row : done.result.rows.all())
    if (!is_claim(row)) rows.push_back(&row);
  if (!rows.empty()) text += table_of(rows);
  if (!done.result.note.empty()) text += done.result.note + "\n\n";
  return text;
}

std::string notes_of(const Paper& paper) {
  if (paper.notes.empty()) return "";
  std::string text = "### Errata, interpretations and replaced data\n\n";
  for (const std::string& note : paper.notes) text += "- " + note + "\n";
  return text + "\n";
}

}  // namespace

std::string page_of(const std::vector<Done>& done, bool figures) {
  std::string text(kHead);
  const Score score = score_of(done);
  text += fmt::format(
      "Rows within tolerance: {}. Of these, {} agree with a number or a statement that the paper "
      "prints, {} with a number recomputed from its formulas (in parentheses), and {} with our own "
      "model, where the paper has no number (in brackets). Outside, with the reason: {}",
      score.within(), score.printed, score.recomputed, score.modelled, score.explained);
  if (score.unexplained > 0)
    text += fmt::format("; outside, without a reason: {}", score.unexplained);
  text += score.shown == 0 ? ".\n\n" : fmt::format("; not judged: {}.\n\n", score.shown);
  for (const Paper& paper : papers()) {
    std::vector<const Row*> claims;
    std::string experiments;
    for (const Done& one : done) {
      if (one.task->paper != &paper) continue;
      experiments += experiment_of(one, figures);
      for (const Row& row : one.result.rows.all())
        if (is_claim(row)) claims.push_back(&row);
    }
    if (experiments.empty()) continue;
    text += fmt::format("## {}\n\n", paper.title);
    if (!claims.empty()) text += "What the paper claims:\n\n" + table_of(claims);
    text += experiments + notes_of(paper);
  }
  text.pop_back();  // one newline at the end
  return text;
}

Score score_of(const std::vector<Done>& done) {
  Score score;
  for (const Done& one : done)
    for (const Row& row : one.result.rows.all()) switch (row.verdict) {
        case Row::Verdict::shown:
          ++score.shown;
          break;
        case Row::Verdict::outside:
          ++(row.why.empty() ? score.unexplained : score.explained);
          break;
        case Row::Verdict::within:
          ++score.printed;
          break;
        case Row::Verdict::corrected:
          ++score.recomputed;
          break;
        case Row::Verdict::predicted:
          ++score.modelled;
          break;
      }
  return score;
}

}  // namespace sluice::repro
