"""Private alignment: from ids that nobody may show to slots that say nothing."""
