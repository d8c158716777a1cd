// `sluice generate clicks|lines`: synthetic streams on standard output or into a file.
#pragma once

namespace CLI {
class App;
}

namespace sluice::cli {

// Adds the subcommand to `app`. When it was asked for, its callback runs inside app.parse() and
// leaves the exit code in `exit_code`, which must live until then: 0 done (also when the reader of
// standard output has gone), 1 the output could not be written, 2 a flag's value is refused.
void add_generate(CLI::App& app, int& exit_code);

}  // namespace sluice::cli
