// The subcommands of `sluice`. Each is added to the parser, runs inside its parse() and sets the
// exit code.
#pragma once

namespace CLI {
class App;
}

namespace sluice::cli {

void add_apply(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_dedup(CLI::App& app, int& exit_code);
void add_delta(CLI::App& app, int& exit_code);
void add_filters(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_merge(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_model(CLI::App& app, int& exit_code);
void add_repro(CLI::App& app, int& exit_code);

}  // namespace sluice::cli
