// The subcommands of `sluice`. Each says which arguments it takes and what it does.
#pragma once

namespace sluice::cli {

class Command;

void add_apply(Command& app);
void add_cluster(Command& app);
void add_compare(Command& app);
void add_count(Command& app);
void add_dedup(Command& app);
void add_delta(Command& app);
void add_filters(Command& app);
void add_generate(Command& app);
void add_inspect(Command& app);
void add_merge(Command& app);
void add_plan(Command& app);
void add_model(Command& app);
void add_repro(Command& app);

}  // namespace sluice::cli
