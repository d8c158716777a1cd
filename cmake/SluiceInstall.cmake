# Placeholder for the installation rules.
